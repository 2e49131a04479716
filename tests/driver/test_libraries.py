"""Sources of ours in place of NVIDIA's libraries for the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from driver.host import needs_compilers
from driver.test_builds import has_nvcc

from gpusim.cli.app import main
from gpusim.driver import builds, nvcc
from gpusim.sass import wheels

RANDOM = """
#include <cstdio>
#include <curand.h>
int main() {
    curandGenerator_t one;
    float *made, own[2];
    cudaMallocManaged(&made, 40000);
    curandCreateGenerator(&one, CURAND_RNG_PSEUDO_DEFAULT);
    curandSetPseudoRandomGeneratorSeed(one, 1234ULL);
    curandGenerateUniform(one, made, 3);
    curandGenerateUniform(one, made + 3, 9997);
    cudaDeviceSynchronize();
    for (int i = 0; i < 10; i++) printf("%.4f ", made[i]);
    printf("%d\\n", curandGenerateNormal(one, made, 3, 0, 1));
    double sum = 0, squares = 0;
    curandGenerateNormal(one, made, 10000, 2, 3);
    cudaDeviceSynchronize();
    for (int i = 0; i < 10000; i++) sum += made[i], squares += made[i] * made[i];
    printf("%.0f %.0f\\n", sum / 10000, squares / 10000);
    curandDestroyGenerator(one);
    curandCreateGeneratorHost(&one, CURAND_RNG_PSEUDO_PHILOX4_32_10);
    curandGenerateUniform(one, own, 2);
    printf("%d\\n", own[0] > 0 && own[0] <= 1 && own[0] != own[1]);
    return curandCreateGenerator(&one, CURAND_RNG_QUASI_SOBOL32) != CURAND_STATUS_TYPE_ERROR;
}
"""


REFERENCES = """
#include <cstdio>
texture<float, 1, cudaReadModeElementType> line;
texture<float, 2> image;
static texture<uchar4, cudaTextureType2D, cudaReadModeNormalizedFloat> bytes;
__global__ void sample(float *out) {
    int t = threadIdx.x;
    out[t] = tex1Dfetch(line, t) + tex2D(image, t + 0.5f, 1.5f)
        + 100 * tex2D(bytes, t % 4 + 0.5f, 0.5f).y;
}
int main() {
    float host[64], *memory, *out;
    uchar4 colours[4] = {{1, 0}, {1, 51}, {1, 102}, {1, 255}};
    for (int i = 0; i < 64; i++) host[i] = i;
    cudaMalloc(&memory, 256);
    cudaMallocManaged(&out, 128);
    cudaMemcpy(memory, host, 256, cudaMemcpyHostToDevice);
    cudaArray *first, *second;
    cudaMallocArray(&first, &image.channelDesc, 16, 4);
    cudaMemcpy2DToArray(first, 0, 0, host, 64, 64, 4, cudaMemcpyHostToDevice);
    cudaMallocArray(&second, &bytes.channelDesc, 4, 1);
    cudaMemcpy2DToArray(second, 0, 0, colours, 16, 16, 1, cudaMemcpyHostToDevice);
    cudaBindTexture(0, line, memory, 256);
    cudaBindTextureToArray(image, first);
    cudaBindTextureToArray(bytes, second);
    for (int turn = 0; turn < 2; turn++) {
        sample<<<1, 32>>>(out);
        cudaDeviceSynchronize();
        for (int i = 0; i < 20; i += 3) printf("%g ", out[i]);
        image.addressMode[0] = cudaAddressModeBorder;
    }
    cudaUnbindTexture(image);
    return cudaGetLastError();
}
"""


@pytest.mark.slow
@needs_compilers
@pytest.mark.skipif(not has_nvcc(), reason=f"needs nvcc: {nvcc.INSTALL}")
def test_texture_references_are_sampled_as_they_stand_at_a_launch(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "references.cu").write_text(REFERENCES)
    assert main(["run", str(tmp_path / "references.cu")]) == 0
    # i of the line, 16 + i of the image's second row up to its edge (15), 20 for each 51 of 255.
    clamped, border = "16 122 68 54 40 146 89", "16 122 68 54 40 146 58"
    assert capfd.readouterr().out.split() == f"{clamped} {border}".split()


def test_functions_that_the_linker_misses_are_in_sources_of_ours() -> None:
    said = "a.o: undefined reference to `curandSetStream'\na.o: undefined reference to `other'"
    assert [Path(one).name for one in builds._own_sources(said)] == ["curand.cu"]
    said = "nvlink error   : Undefined reference to '__cudaCDP2LaunchDeviceV2' in 'a.o'"
    assert [Path(one).name for one in builds._own_sources(said)] == ["device_runtime.cu"]


@pytest.mark.slow
@needs_compilers
@pytest.mark.skipif(
    not has_nvcc() or not any((one / "curand.h").exists() for one in wheels.folders("include")),
    reason=f"needs nvcc and cuRAND's headers: {nvcc.INSTALL}",
)
def test_curand_has_the_numbers_of_its_legacy_ordering(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "random.cu").write_text(RANDOM)
    assert main(["run", str(tmp_path / "random.cu"), "-l", "curand"]) == 2
    printed = capfd.readouterr()
    # The first ten as cuRAND's guide has them of its example of the host's API.
    ten = "0.1455 0.8202 0.5504 0.2948 0.9147 0.8690 0.3219 0.7829 0.0113 0.2855"
    assert printed.out.splitlines() == [f"{ten} 105", "2 13", "1"]
    assert "cuRAND's Mersenne Twisters and quasirandom generators" in printed.err
