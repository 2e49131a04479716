// cuRAND's host library upon its generators for kernels (curand_kernel.h): 4,096 subsequences take
// turns, which for XORWOW and MRG32k3a is CURAND_ORDERING_PSEUDO_LEGACY (cuRAND's guide, "Generator
// options"); other orderings, distributions and Philox have the library's laws, not its numbers.
#include <curand.h>
#include <curand_kernel.h>

extern "C" int gpusim_refuse(const char *);

enum { STATES = 4096, THREADS = 256 };

struct curandGenerator_st {
  curandRngType_t type;
  bool is_on_host, is_seeded;
  unsigned long long seed, offset, made;  // numbers made of them so far
  void *states;
  cudaStream_t stream;
};

template <class State> __global__ void seed_states(State *states, unsigned long long seed, unsigned long long offset) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, t, (offset + STATES - 1 - t) / STATES, states + t);
}
// The number i is made by the state of its turn.
template <class State, class T, class Law> __global__ void fill(State *states, T *out, size_t count, unsigned first, Law law) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  State state = states[t];
  for (size_t i = (t + STATES - first) % STATES; i < count; i += STATES) out[i] = law(&state);
  states[t] = state;
}
struct Bits { template <class S> __device__ unsigned operator()(S *s) const { return curand(s); } };
struct Uniform {
  template <class S> __device__ float operator()(S *s) const { return curand_uniform(s); }
};
struct UniformDouble {
  template <class S> __device__ double operator()(S *s) const { return curand_uniform_double(s); }
};
struct Normal {
  float mean, deviation;
  template <class S> __device__ float operator()(S *s) const { return mean + deviation * curand_normal(s); }
};
struct NormalDouble {
  double mean, deviation;
  template <class S> __device__ double operator()(S *s) const { return mean + deviation * curand_normal_double(s); }
};
struct LogNormal {
  float mean, deviation;
  template <class S> __device__ float operator()(S *s) const { return curand_log_normal(s, mean, deviation); }
};
struct LogNormalDouble {
  double mean, deviation;
  template <class S> __device__ double operator()(S *s) const { return curand_log_normal_double(s, mean, deviation); }
};
struct Poisson {
  double mean;
  template <class S> __device__ unsigned operator()(S *s) const { return curand_poisson(s, mean); }
};

template <class State, class T, class Law> static curandStatus_t generate_with(curandGenerator_t g, T *out, size_t count, Law law) {
  unsigned long long at = g->offset + g->made;
  if (!g->states && cudaMalloc(&g->states, STATES * sizeof(State))) return CURAND_STATUS_ALLOCATION_FAILED;
  if (!g->is_seeded) seed_states<<<STATES / THREADS, THREADS, 0, g->stream>>>((State *)g->states, g->seed, at);
  g->is_seeded = true;
  T *to = out;
  if (g->is_on_host && cudaMalloc((void **)&to, count * sizeof(T))) return CURAND_STATUS_ALLOCATION_FAILED;
  fill<<<STATES / THREADS, THREADS, 0, g->stream>>>((State *)g->states, to, count, unsigned(at % STATES), law);
  g->made += count;
  if (g->is_on_host) {
    cudaMemcpy(out, to, count * sizeof(T), cudaMemcpyDeviceToHost);
    cudaFree(to);
  }
  return cudaPeekAtLastError() ? CURAND_STATUS_LAUNCH_FAILURE : CURAND_STATUS_SUCCESS;
}
template <class T, class Law> static curandStatus_t generate(curandGenerator_t g, T *out, size_t count, Law law) {
  if (!g) return CURAND_STATUS_NOT_INITIALIZED;
  if (!count) return CURAND_STATUS_SUCCESS;
  switch (g->type) {
    case CURAND_RNG_PSEUDO_MRG32K3A: return generate_with<curandStateMRG32k3a_t>(g, out, count, law);
    case CURAND_RNG_PSEUDO_PHILOX4_32_10: return generate_with<curandStatePhilox4_32_10_t>(g, out, count, law);
    default: return generate_with<curandStateXORWOW_t>(g, out, count, law);
  }
}
static curandStatus_t create(curandGenerator_t *made, curandRngType_t type, bool is_on_host) {
  *made = 0;
  if (type == CURAND_RNG_PSEUDO_DEFAULT) type = CURAND_RNG_PSEUDO_XORWOW;
  if (type != CURAND_RNG_PSEUDO_XORWOW && type != CURAND_RNG_PSEUDO_MRG32K3A && type != CURAND_RNG_PSEUDO_PHILOX4_32_10) {
    gpusim_refuse("cuRAND's Mersenne Twisters and quasirandom generators on the host");
    return CURAND_STATUS_TYPE_ERROR;
  }
  *made = new curandGenerator_st{type, is_on_host, false, 0, 0, 0, 0, 0};
  return CURAND_STATUS_SUCCESS;
}

#define SERVED extern "C" curandStatus_t CURANDAPI
SERVED curandCreateGenerator(curandGenerator_t *made, curandRngType_t type) { return create(made, type, false); }
SERVED curandCreateGeneratorHost(curandGenerator_t *made, curandRngType_t type) { return create(made, type, true); }
SERVED curandDestroyGenerator(curandGenerator_t g) {
  if (!g) return CURAND_STATUS_NOT_INITIALIZED;
  cudaFree(g->states);
  delete g;
  return CURAND_STATUS_SUCCESS;
}
SERVED curandGetVersion(int *version) { *version = CURAND_VERSION; return CURAND_STATUS_SUCCESS; }
SERVED curandSetStream(curandGenerator_t g, cudaStream_t stream) {
  if (!g) return CURAND_STATUS_NOT_INITIALIZED;
  g->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
static curandStatus_t restarted(curandGenerator_t g) {
  if (!g) return CURAND_STATUS_NOT_INITIALIZED;
  g->is_seeded = false, g->made = 0;
  return CURAND_STATUS_SUCCESS;
}
SERVED curandSetPseudoRandomGeneratorSeed(curandGenerator_t g, unsigned long long seed) {
  if (g) g->seed = seed;
  return restarted(g);
}
SERVED curandSetGeneratorOffset(curandGenerator_t g, unsigned long long offset) {
  if (g) g->offset = offset;
  return restarted(g);
}
SERVED curandSetGeneratorOrdering(curandGenerator_t g, curandOrdering_t) { return g ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED; }
SERVED curandGenerateSeeds(curandGenerator_t g) { return g ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED; }
SERVED curandGenerate(curandGenerator_t g, unsigned *out, size_t n) { return generate(g, out, n, Bits{}); }
SERVED curandGenerateUniform(curandGenerator_t g, float *out, size_t n) { return generate(g, out, n, Uniform{}); }
SERVED curandGenerateUniformDouble(curandGenerator_t g, double *out, size_t n) { return generate(g, out, n, UniformDouble{}); }
// Normal numbers come in pairs: the library refuses odd counts.
#define IN_PAIRS(n) if ((n) % 2) return CURAND_STATUS_LENGTH_NOT_MULTIPLE
SERVED curandGenerateNormal(curandGenerator_t g, float *out, size_t n, float mean, float deviation) {
  IN_PAIRS(n);
  return generate(g, out, n, Normal{mean, deviation});
}
SERVED curandGenerateNormalDouble(curandGenerator_t g, double *out, size_t n, double mean, double deviation) {
  IN_PAIRS(n);
  return generate(g, out, n, NormalDouble{mean, deviation});
}
SERVED curandGenerateLogNormal(curandGenerator_t g, float *out, size_t n, float mean, float deviation) {
  IN_PAIRS(n);
  return generate(g, out, n, LogNormal{mean, deviation});
}
SERVED curandGenerateLogNormalDouble(curandGenerator_t g, double *out, size_t n, double mean, double deviation) {
  IN_PAIRS(n);
  return generate(g, out, n, LogNormalDouble{mean, deviation});
}
SERVED curandGeneratePoisson(curandGenerator_t g, unsigned *out, size_t n, double mean) { return generate(g, out, n, Poisson{mean}); }
