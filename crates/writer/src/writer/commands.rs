//! Commands that write no content: one alone, or many with several in flight.

use byname_catalog::{Answer, Command, SLOT_COUNT};
use byname_site::SiteAnswer;

use super::Writer;
use crate::error::WriterError;

/// Most questions in flight: heads remember the numbers of more than these.
const QUESTIONS_MAX: usize = 256;

/// Commands that are sent several at a time.
pub trait CommandList {
    /// The next command, under a number that no other in flight has; `None` if there is none.
    fn next(&mut self) -> Option<(usize, Command)>;

    /// Takes the answer to a command. What is returned is sent next, under the same number.
    fn handle_answer(
        &mut self,
        number: usize,
        answer: Result<SiteAnswer, WriterError>,
    ) -> Option<Command>;
}

/// Questions that are asked several at a time.
pub trait QuestionList {
    /// The next question, under a number that no other in flight has; `None` if there is none.
    fn next(&mut self) -> Option<(usize, Vec<u8>)>;

    /// Takes what the head says to a question.
    fn handle_told(&mut self, number: usize, told: Result<Vec<u8>, WriterError>);
}

impl Writer {
    /// Asks the head questions, `in_flight` at a time, until there are none any more and all are
    /// answered.
    ///
    /// # Errors
    /// What ends all of them: the connection, or a wish to stop. What ends one is its answer.
    pub fn ask_all(
        &mut self,
        list: &mut dyn QuestionList,
        in_flight: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), WriterError> {
        let asked = self.send_questions(list, in_flight.clamp(1, QUESTIONS_MAX), is_stopped);
        if asked.is_err() {
            self.core.forget_commands();
        }
        asked
    }

    fn send_questions(
        &mut self,
        list: &mut dyn QuestionList,
        in_flight: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), WriterError> {
        let (mut count, mut is_last) = (0, false);
        loop {
            while let Some((number, told)) = self.core.poll_told() {
                list.handle_told(number, told);
                count -= 1;
            }
            while !is_last && count < in_flight {
                match list.next() {
                    Some((number, question)) => {
                        self.core.ask(number, &question, self.now())?;
                        count += 1;
                    }
                    None => is_last = true,
                }
            }
            if count == 0 {
                return Ok(());
            }
            self.turn(is_stopped)?;
        }
    }

    /// Sends a command that writes no content and waits for its answer.
    ///
    /// # Errors
    /// [`WriterError`]; [`WriterError::Refused`] if the catalog says no.
    pub fn execute(
        &mut self,
        command: Command,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Answer, WriterError> {
        let mut one = One { command: Some(command), answer: None };
        self.execute_all(&mut one, 1, is_stopped)?;
        match one.answer.ok_or(WriterError::OtherAnswer)?? {
            SiteAnswer::Plain(answer) => Ok(answer),
            SiteAnswer::Ticket(_) | SiteAnswer::Agreed { .. } => Err(WriterError::OtherAnswer),
        }
    }

    /// Sends commands that write no content, `in_flight` at a time and never more than a session
    /// has slots, until there are none any more and all are answered.
    ///
    /// # Errors
    /// What ends all of them: the connection, or a wish to stop. What ends one is its answer.
    pub fn execute_all(
        &mut self,
        list: &mut dyn CommandList,
        in_flight: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), WriterError> {
        let in_flight = in_flight.clamp(1, usize::from(SLOT_COUNT));
        let executed = self.send_all(list, in_flight, is_stopped);
        if executed.is_err() {
            self.core.forget_commands();
        }
        executed
    }

    fn send_all(
        &mut self,
        list: &mut dyn CommandList,
        in_flight: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), WriterError> {
        let (mut count, mut is_last) = (0, false);
        loop {
            while let Some((number, answer)) = self.core.poll_answer() {
                match list.handle_answer(number, answer) {
                    Some(command) => self.core.send(number, command, self.now())?,
                    None => count -= 1,
                }
            }
            while !is_last && count < in_flight {
                match list.next() {
                    Some((number, command)) => {
                        self.core.send(number, command, self.now())?;
                        count += 1;
                    }
                    None => is_last = true,
                }
            }
            if count == 0 {
                return Ok(());
            }
            self.turn(is_stopped)?;
        }
    }
}

/// A single command.
struct One {
    command: Option<Command>,
    answer: Option<Result<SiteAnswer, WriterError>>,
}

impl CommandList for One {
    fn next(&mut self) -> Option<(usize, Command)> {
        Some((0, self.command.take()?))
    }

    fn handle_answer(
        &mut self,
        _: usize,
        answer: Result<SiteAnswer, WriterError>,
    ) -> Option<Command> {
        self.answer = Some(answer);
        None
    }
}
