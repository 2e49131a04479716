// Options of a command line, by the names of CUDA's samples.
#pragma once
#include <cstdlib>
#include <cstring>
#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif

// The text behind an option and its "=", the end of the option without one, NULL without the option.
inline const char *gpusim_option(int count, const char **words, const char *name) {
  size_t length = strlen(name);
  for (int k = 1; k < count; k++) {
    const char *word = words[k];
    while (*word == '-') word++;
    if (word == words[k] || strncmp(word, name, length)) continue;
    if (word[length] == '=') return word + length + 1;
    if (!word[length]) return word + length;
  }
  return nullptr;
}
inline bool checkCmdLineFlag(int count, const char **words, const char *name) { return gpusim_option(count, words, name) != nullptr; }
inline int getCmdLineArgumentInt(int count, const char **words, const char *name) {
  const char *found = gpusim_option(count, words, name);
  return found ? atoi(found) : 0;
}
inline float getCmdLineArgumentFloat(int count, const char **words, const char *name) {
  const char *found = gpusim_option(count, words, name);
  return found ? (float)atof(found) : 0;
}
inline bool getCmdLineArgumentString(int count, const char **words, const char *name, char **value) {
  const char *found = gpusim_option(count, words, name);
  *value = const_cast<char *>(found);
  return found != nullptr;
}
