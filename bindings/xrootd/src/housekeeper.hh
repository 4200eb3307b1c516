// A thread for what has to be done now and then.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace byname::xrd {

// Runs a task every `period` until it is destroyed.
class Housekeeper {
 public:
  Housekeeper(std::chrono::milliseconds period, std::function<void()> task);
  ~Housekeeper();
  Housekeeper(const Housekeeper&) = delete;
  Housekeeper& operator=(const Housekeeper&) = delete;

 private:
  void run();

  const std::chrono::milliseconds period_;
  const std::function<void()> task_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace byname::xrd
