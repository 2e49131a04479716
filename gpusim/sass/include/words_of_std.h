// Types of the host's library that declarations name and no device code uses: nothing is in them.
#pragma once
namespace std {
#define GPUSIM_TEMPLATE(name) template <typename...> class name {};
GPUSIM_TEMPLATE(basic_string) GPUSIM_TEMPLATE(deque) GPUSIM_TEMPLATE(forward_list) GPUSIM_TEMPLATE(function)
GPUSIM_TEMPLATE(future) GPUSIM_TEMPLATE(hash) GPUSIM_TEMPLATE(list) GPUSIM_TEMPLATE(lock_guard) GPUSIM_TEMPLATE(map)
GPUSIM_TEMPLATE(multimap) GPUSIM_TEMPLATE(multiset) GPUSIM_TEMPLATE(optional) GPUSIM_TEMPLATE(priority_queue)
GPUSIM_TEMPLATE(promise) GPUSIM_TEMPLATE(queue) GPUSIM_TEMPLATE(set) GPUSIM_TEMPLATE(shared_ptr) GPUSIM_TEMPLATE(stack)
GPUSIM_TEMPLATE(tuple) GPUSIM_TEMPLATE(unique_lock) GPUSIM_TEMPLATE(unique_ptr) GPUSIM_TEMPLATE(unordered_map)
GPUSIM_TEMPLATE(unordered_multimap) GPUSIM_TEMPLATE(unordered_set) GPUSIM_TEMPLATE(variant) GPUSIM_TEMPLATE(vector)
GPUSIM_TEMPLATE(weak_ptr)
#undef GPUSIM_TEMPLATE
#define GPUSIM_CLASS(name) class name {};
GPUSIM_CLASS(any) GPUSIM_CLASS(condition_variable) GPUSIM_CLASS(exception) GPUSIM_CLASS(fstream) GPUSIM_CLASS(ifstream)
GPUSIM_CLASS(iostream) GPUSIM_CLASS(istream) GPUSIM_CLASS(istringstream) GPUSIM_CLASS(logic_error) GPUSIM_CLASS(mt19937)
GPUSIM_CLASS(mutex) GPUSIM_CLASS(ofstream) GPUSIM_CLASS(ostream) GPUSIM_CLASS(ostringstream) GPUSIM_CLASS(recursive_mutex)
GPUSIM_CLASS(runtime_error) GPUSIM_CLASS(string_view) GPUSIM_CLASS(stringstream) GPUSIM_CLASS(thread)
#undef GPUSIM_CLASS
using string = basic_string<char>;
using wstring = basic_string<wchar_t>;
template <typename A, typename B> struct pair {
  A first;
  B second;
};
} // namespace std
