// Runs all unit tests; ends like a Rust test program, so that the same totals can be taken.
#include "check.hh"

int main() {
  using namespace byname::xrd::test;
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
