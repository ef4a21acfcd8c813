import type { Requirement } from '../requirement.ts'

/** Section 11: the scripted model and the golden sessions. */
export const scripted = [
  {
    id: 'session-agent-refactor/11 scripted-model',
    quote:
      'A deterministic mock streaming provider that emits scripted events through the same callback interface used by `fantasy.AgentStreamCall`.',
    settled: 'DESIGN 6: `scriptedModel`: the model is scripted, the loop is real.',
  },
  {
    id: 'session-agent-refactor/11 no-api-calls',
    quote: 'This enables precise testing of orchestration behavior without API calls.',
  },
  {
    id: 'session-agent-refactor/11 stream-event',
    quote: '**Key types**:\n`StreamEvent` - Interface for all scriptable events',
    settled: '`ScriptEvent`, a union.',
  },
  {
    id: 'session-agent-refactor/11 scripted-agent',
    quote: '`ScriptedAgent` - Implements `fantasy.Agent` with predetermined script',
    settled: '`ScriptedModel` implements `Model`.',
  },
  { id: 'session-agent-refactor/11 script-builder', quote: '`ScriptBuilder` - Fluent API for building test scripts' },
  {
    id: 'session-agent-refactor/11 text-delta',
    quote: '**Supported events**:\n`TextDeltaEvent` - Text content streaming',
  },
  {
    id: 'session-agent-refactor/11 reasoning',
    quote: '`ReasoningStartEvent`, `ReasoningDeltaEvent`, `ReasoningEndEvent` - Reasoning/thinking',
  },
  {
    id: 'session-agent-refactor/11 tool-lifecycle',
    quote: '`ToolInputStartEvent`, `ToolCallEvent`, `ToolResultEvent` - Tool lifecycle',
  },
  { id: 'session-agent-refactor/11 error', quote: '`ErrorEvent` - Provider errors' },
  {
    id: 'session-agent-refactor/11 cancel',
    quote: '`CancelEvent` - Context cancellation (immediately returns `context.Canceled`)',
    settled: "The signal's reason is thrown.",
  },
  { id: 'session-agent-refactor/11 finish', quote: '`FinishEvent` - Step completion with finish reason' },
  { id: 'session-agent-refactor/11 step-boundary', quote: '`StepBoundaryEvent` - Multi-step interaction boundaries' },
  {
    id: 'session-agent-refactor/11 golden-cancel-mid-tool-call',
    quote: '| `TestGolden_CancelMidToolCall` | Tool calls force-closed on cancel, finish reason set |',
  },
  {
    id: 'session-agent-refactor/11 golden-tool-failure',
    quote: '| `TestGolden_ToolFailure` | Tool error results persisted correctly |',
  },
  {
    id: 'session-agent-refactor/11 golden-provider-error',
    quote: '| `TestGolden_ProviderError` | Provider errors set finish reason and details |',
    settled: 'A failed call is an `attempt`; the kind and the words are in `error` and `run_end`.',
  },
  {
    id: 'session-agent-refactor/11 golden-normal-completion',
    quote: '| `TestGolden_NormalCompletion` | Happy path - text streaming, finish reason |',
  },
  {
    id: 'session-agent-refactor/11 golden-reasoning-then-response',
    quote: '| `TestGolden_ReasoningThenResponse` | Reasoning content captured before response |',
  },
  {
    id: 'session-agent-refactor/11 golden-multi-step-tool-use',
    quote: '| `TestGolden_MultiStepToolUse` | Multi-step tool interactions create correct message sequence |',
  },
  {
    id: 'session-agent-refactor/11 golden-cancel-during-reasoning',
    quote: '| `TestGolden_CancelDuringReasoning` | Reasoning saved even on cancel |',
  },
  {
    id: 'session-agent-refactor/11 build-a-script',
    quote: 'script := NewScript().\nToolStart("tool-1", "bash").\nCancel().  // Cancel before tool finishes\nBuild()',
  },
  {
    id: 'session-agent-refactor/11 cancel-function',
    quote:
      'scriptedAgent := NewScriptedAgent(script)\nctx, cancel := context.WithCancel(t.Context())\nscriptedAgent.SetCancelFunc(cancel)',
    settled: '`onCancel` of the options.',
  },
  {
    id: 'session-agent-refactor/11 run-is-cancelled',
    quote:
      '// Run and verify error handling behavior\n_, err := agent.Run(ctx, call)\nrequire.ErrorIs(t, err, context.Canceled)',
    settled: 'The run ends with the outcome `aborted`.',
  },
  {
    id: 'session-agent-refactor/11 writes-survive-cancel',
    quote: 'The `scriptedSessionAgent` uses `context.Background()` for the final message update during error recovery.',
  },
  {
    id: 'session-agent-refactor/11 writes-complete',
    quote:
      "This mirrors the real agent's use of parent context, ensuring DB writes complete even after cancellation.\n// In error handler:\n_ = a.messages.Update(context.Background(), *currentAssistant)",
    settled: 'Writes that must survive an abort do not take the signal.',
  },
] as const satisfies Requirement[]
