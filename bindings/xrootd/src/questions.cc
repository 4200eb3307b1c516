#include "questions.hh"

#include <condition_variable>
#include <mutex>
#include <optional>

namespace byname::xrd {
namespace {

// Calls that have not ended.
class Count {
 public:
  explicit Count(size_t calls) : calls_(calls) {}

  void ended() {
    // Who waits must not go, and this with it, before the lock is free.
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_ -= 1;
    is_over_.notify_all();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    is_over_.wait(lock, [this] { return calls_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_over_;
  size_t calls_;
};

struct Question {
  Count* count;
  byname_attributes attributes = byname_init<byname_attributes>();
  std::optional<Failure> failure = std::nullopt;
};

void note_end(void* context, const byname_error* error) {
  auto& question = *static_cast<Question*>(context);
  if (error->code != 0) {
    question.failure = failure_of(*error);
  }
  question.count->ended();
}

}  // namespace

std::vector<Outcome<Status>> Questions::ask() const {
  Count count(paths_.size());
  std::vector<Question> questions(paths_.size(), Question{&count});
  for (size_t index = 0; index < paths_.size(); ++index) {
    auto completion = byname_init<byname_completion>();
    completion.done = note_end;
    completion.context = &questions[index];
    auto error = no_error();
    if (byname_stat_start(session_, paths_[index].c_str(), &questions[index].attributes,
                          &completion, &error) < 0) {
      note_end(&questions[index], &error);
    }
  }
  count.wait();
  std::vector<Outcome<Status>> answers;
  for (size_t index = 0; index < paths_.size(); ++index) {
    const Question& question = questions[index];
    if (question.failure) {
      answers.emplace_back(*question.failure);
    } else {
      answers.emplace_back(status_of(question.attributes, paths_[index]));
    }
  }
  return answers;
}

}  // namespace byname::xrd
