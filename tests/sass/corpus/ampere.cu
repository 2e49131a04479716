// What begins with compute capability 8.0.
__global__ void reduxes(const int *x, int *y) { int i = threadIdx.x; y[i] = __reduce_add_sync(~0u, x[i]) + __reduce_max_sync(~0u, x[i]) + __reduce_min_sync(~0u, x[i]) + (__reduce_or_sync(~0u, (unsigned)x[i]) ^ __reduce_xor_sync(~0u, (unsigned)x[i])) + __reduce_and_sync(~0u, (unsigned)x[i]); }
__global__ void copies(const int4 *x, int4 *y) { __shared__ int4 s[128]; int i = threadIdx.x; 
 unsigned a = __cvta_generic_to_shared(&s[i]); asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(x + i)); asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 0;"); __syncthreads(); y[i] = s[127 - i]; }
__global__ void some_copies(const int4 *x, int4 *y, int n) { __shared__ int4 s[128]; int i = threadIdx.x; s[i] = make_int4(7, 7, 7, 7); __syncthreads();
 unsigned a = __cvta_generic_to_shared(&s[i]); if (i < n) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(x + i) : "memory"); asm volatile("cp.async.commit_group;" ::: "memory"); asm volatile("cp.async.wait_group 0;" ::: "memory"); __syncthreads(); y[i] = s[127 - i]; }
