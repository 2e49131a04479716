// How many blocks an SM holds at a time, without clusters and in them: as blocks that spin see it,
// and by the occupancy API. To build and run, with a GPU of compute capability 9.0:
// nvcc -O3 -std=c++17 -arch=sm_90a -o residents residents.cu
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>
#include <cuda_runtime.h>
#define OK(x) do { cudaError_t e = (x); if (e) { printf("# %s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

struct Seen { unsigned long long begin, end; unsigned sm; };

__device__ unsigned long long now() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__global__ void spin(Seen *seen, long long cycles) {
    extern __shared__ char unused[];
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    unsigned long long begin = now();
    long long start = clock64();
    while (clock64() - start < cycles) {}
    if (threadIdx.x == 0) seen[blockIdx.x] = {begin, now(), sm};
}

static void residents(int cluster, int threads, int shared, Seen *seen) {
    int sms, at_once, blocks = 132 * 64;
    OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    cudaLaunchAttribute size[1];
    size[0].id = cudaLaunchAttributeClusterDimension;
    size[0].val.clusterDim = {(unsigned)cluster, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(blocks), launch.blockDim = dim3(threads), launch.dynamicSmemBytes = shared;
    launch.attrs = size, launch.numAttrs = cluster > 1;
    if (cluster > 1) {
        OK(cudaOccupancyMaxActiveClusters(&at_once, spin, &launch));
    } else {
        OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, spin, threads, shared));
        at_once *= sms;
    }
    OK(cudaLaunchKernelEx(&launch, spin, seen, 100000LL));
    OK(cudaDeviceSynchronize());
    std::vector<Seen> all(blocks);
    OK(cudaMemcpy(all.data(), seen, blocks * sizeof(Seen), cudaMemcpyDeviceToHost));
    std::map<unsigned, std::vector<std::pair<unsigned long long, int>>> events;
    for (auto &one : all) {
        events[one.sm].push_back({one.begin, 1});
        events[one.sm].push_back({one.end, -1});
    }
    int most = 0;
    for (auto &[sm, changes] : events) {
        std::sort(changes.begin(), changes.end());
        int here = 0;
        for (auto &change : changes) most = std::max(most, here += change.second);
    }
    printf("%d,%d,%d,%d,%d,%zu\n", cluster, threads, shared, most, at_once, events.size());
}

int main() {
    Seen *seen;
    OK(cudaMalloc(&seen, sizeof(Seen) * 132 * 64));
    puts("blocks in a cluster,threads,shared bytes,blocks on an SM,blocks or clusters by the API,SMs");
    for (int cluster : {1, 2, 4, 8})
        for (int threads : {32, 64, 96, 128, 192, 256, 512}) residents(cluster, threads, 0, seen);
    for (int cluster : {1, 2, 8})
        for (int shared : {4096, 8192, 16384}) residents(cluster, 64, shared, seen);
}
