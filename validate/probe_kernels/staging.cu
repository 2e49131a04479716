// Bringing data to shared memory: through registers, and by cp.async past them.

enum Way { REGISTERS, ASYNC, ASYNC_SMALL };

__device__ void stage(unsigned to, const char *from, Way way) {
    if (way == ASYNC)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    if (way == ASYNC_SMALL)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

// Each thread brings DEPTH pieces of 16 bytes (4 with ASYNC_SMALL) to shared memory, waits for
// them, meets its block, and goes on with the next, through `bytes`; warp 0 of each block tells
// its cycles.
template <Way WAY, int DEPTH>
__global__ void staged(long long *told, const char *memory, unsigned long long bytes) {
    extern __shared__ int4 room[];
    constexpr int size = WAY == ASYNC_SMALL ? 4 : 16;
    unsigned mine = (unsigned)__cvta_generic_to_shared(room) + threadIdx.x * size;
    unsigned long long step = (unsigned long long)blockDim.x * size;
    int sum = 0;
    long long begin = clock64();
#pragma unroll 1
    for (unsigned long long at = blockIdx.x * DEPTH * step; at < bytes;
         at += gridDim.x * DEPTH * step) {
        const char *from = memory + at + threadIdx.x * size;
        if (WAY == REGISTERS) {
            int4 v[DEPTH];
#pragma unroll
            for (int k = 0; k < DEPTH; ++k)
                asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                             : "l"(from + k * step) : "memory");
#pragma unroll
            for (int k = 0; k < DEPTH; ++k) room[threadIdx.x + k * blockDim.x] = v[k];
        } else {
#pragma unroll
            for (int k = 0; k < DEPTH; ++k) stage(mine + k * step, from + k * step, WAY);
            asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        sum += ((volatile int *)room)[(threadIdx.x + 32) % blockDim.x];
        __syncthreads();
    }
    long long end = clock64();
    if (threadIdx.x == 0) {
        told[2 * blockIdx.x] = begin;
        told[2 * blockIdx.x + 1] = end;
    }
    if (sum == 0x5eed5eed) told[0] = sum;
}
