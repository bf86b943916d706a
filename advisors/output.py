"""Hold the answer to a schema."""

from __future__ import annotations

from dataclasses import dataclass

from reactflow.chain import Handler, Order
from reactflow.errors import ModelBehaviorError
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, ChatResponse, cut_short
from reactflow.output_schema import OutputSchema
from reactflow.phrases import invalid_output_feedback


@dataclass(frozen=True, slots=True)
class OutputAdvisor:
    """Checks each answer against *schema* and sends an invalid one back once.

    It sits inside reflection, so that a judge sees only valid answers.  The invalid answer and the complaint stay in
    the turn's messages.

    Args:
        schema: What the answer must be.
        order: Its place among the advisors.

    Raises:
        ModelBehaviorError: The second answer is invalid too; says where.
    """

    schema: OutputSchema
    order: int = Order.VALIDATION

    async def advise(self, request: ChatRequest, call_next: Handler) -> ChatResponse:
        """Check, and ask once more where the answer is invalid."""
        response = await call_next(request)
        problem = self._problem(response)
        if problem is None:
            return response
        complaint = UserMessage(invalid_output_feedback(request.run.question.text, problem), synthetic="validation")
        rejected = (*response.transcript, response.message, complaint)
        again = await call_next(request.followed_by(*rejected))
        problem = self._problem(again)
        if problem is not None:
            raise ModelBehaviorError(f"The model twice gave an answer that does not fit output_type: {problem}")
        return again.replace(transcript=(*rejected, *again.transcript))

    def _problem(self, response: ChatResponse) -> str | None:
        if response.message.tool_calls or response.stop_reason is not None or cut_short(response):
            return None
        try:
            self.schema.read(response.text)
        except ValueError as error:
            return str(error)
        return None
