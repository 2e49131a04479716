// What begins with compute capability 8.0.
__global__ void reduxes(const int *x, int *y) { int i = threadIdx.x; y[i] = __reduce_add_sync(~0u, x[i]) + __reduce_max_sync(~0u, x[i]) + __reduce_min_sync(~0u, x[i]) + (__reduce_or_sync(~0u, (unsigned)x[i]) ^ __reduce_xor_sync(~0u, (unsigned)x[i])) + __reduce_and_sync(~0u, (unsigned)x[i]); }
__global__ void copies(const int4 *x, int4 *y) { __shared__ int4 s[128]; int i = threadIdx.x; 
 unsigned a = __cvta_generic_to_shared(&s[i]); asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(x + i)); asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 0;"); __syncthreads(); y[i] = s[127 - i]; }
