// The least that a unit test needs: tests register themselves, a failed check says where.
#pragma once

#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace byname::xrd::test {

struct Test {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Registered {
  Registered(const char* name, std::function<void()> body) {
    tests().push_back({name, std::move(body)});
  }
};

template <class Got, class Wanted>
void check_equal(const Got& got, const Wanted& wanted, const char* file, int line) {
  if (!(got == wanted)) {
    std::cerr << file << ":" << line << ": got " << got << ", wanted " << wanted << "\n";
    failures() += 1;
  }
}

}  // namespace byname::xrd::test

#define TEST(name)                                                           \
  static void name();                                                        \
  static const byname::xrd::test::Registered registered_##name(#name, name); \
  static void name()
#define CHECK(condition) byname::xrd::test::check_equal(bool(condition), true, __FILE__, __LINE__)
#define CHECK_EQUAL(got, wanted) byname::xrd::test::check_equal(got, wanted, __FILE__, __LINE__)
