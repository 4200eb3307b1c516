// Runs all unit tests; ends like a Rust test program, so that the same totals can be taken.
#include <unistd.h>

#include "check.hh"

// A test that waits for ever ends all of them.
constexpr unsigned kLimitSeconds = 60;

int main() {
  using namespace byname::xrd::test;
  alarm(kLimitSeconds);
  int failed = 0;
  for (const Test& test : tests()) {
    const int before = failures();
    test.body();
    const bool is_good = failures() == before;
    failed += is_good ? 0 : 1;
    std::cout << "test " << test.name << " ... " << (is_good ? "ok" : "FAILED") << "\n";
  }
  const auto passed = static_cast<int>(tests().size()) - failed;
  std::cout << "test result: " << (failed == 0 ? "ok" : "FAILED") << ". " << passed << " passed; "
            << failed << " failed; 0 ignored\n";
  return failed == 0 && passed > 0 ? 0 : 1;
}
