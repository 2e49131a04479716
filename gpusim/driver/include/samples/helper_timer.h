// The stop watch of CUDA's samples: milliseconds of the host.
#pragma once
#include <chrono>

class StopWatchInterface {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  float total = 0;
  int turns = 0;
  bool runs = false;
  float since() const { return std::chrono::duration<float, std::milli>(Clock::now() - begin).count(); }

public:
  void start() { begin = Clock::now(), runs = true; }
  void stop() { total += since(), turns++, runs = false; }
  void reset() { total = 0, turns = 0, begin = Clock::now(); }
  float getTime() { return total + (runs ? since() : 0); }
  float getAverageTime() { return turns ? total / turns : 0; }
};
inline bool sdkCreateTimer(StopWatchInterface **timer) {
  *timer = new StopWatchInterface;
  return true;
}
inline bool sdkDeleteTimer(StopWatchInterface **timer) {
  delete *timer;
  *timer = nullptr;
  return true;
}
inline bool sdkStartTimer(StopWatchInterface **timer) { return (*timer)->start(), true; }
inline bool sdkStopTimer(StopWatchInterface **timer) { return (*timer)->stop(), true; }
inline bool sdkResetTimer(StopWatchInterface **timer) { return (*timer)->reset(), true; }
inline float sdkGetTimerValue(StopWatchInterface **timer) { return (*timer)->getTime(); }
inline float sdkGetAverageTimerValue(StopWatchInterface **timer) { return (*timer)->getAverageTime(); }
