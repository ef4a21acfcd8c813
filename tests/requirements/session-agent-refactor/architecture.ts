import type { Requirement } from '../requirement.ts'

/** Sections 1 to 4: the parts of a run, and what each of them does. */
export const architecture = [
  { id: 'session-agent-refactor/1 input-validation', quote: 'Input validation' },
  { id: 'session-agent-refactor/1 queue-management', quote: 'Queue management (busy check, enqueue, dequeue)' },
  { id: 'session-agent-refactor/1 user-message', quote: 'User message persistence' },
  { id: 'session-agent-refactor/1 title', quote: 'Async title generation' },
  { id: 'session-agent-refactor/1 setup-with-cache-markers', quote: 'Provider/tool setup with cache markers' },
  {
    id: 'session-agent-refactor/1 streaming',
    quote: 'Streaming orchestration (10 callbacks)',
    settled: 'DESIGN 6: one union of events; the callbacks are sugar on top.',
  },
  {
    id: 'session-agent-refactor/1 message-state',
    quote: 'Message state tracking (assistant message mutations)',
    settled: 'DESIGN 3: an answer becomes one entry when it is finished; nothing that is in the log is changed.',
  },
  { id: 'session-agent-refactor/1 error-recovery', quote: 'Error recovery and partial state persistence' },
  {
    id: 'session-agent-refactor/1 summary-and-queue',
    quote: 'Auto-summarization trigger and queue replay',
    settled: 'DESIGN 7: compaction before the next request, in the run.',
  },
  { id: 'session-agent-refactor/2 short-functions', quote: '| **Readability** | No function exceeds 100 lines |' },
  {
    id: 'session-agent-refactor/2 one-file-for-a-callback',
    quote: '| **Maintainability** | Adding a new callback requires touching 1 file |',
  },
  {
    id: 'session-agent-refactor/2 latency',
    quote: '| **Performance** | No regression in streaming latency |',
    settled: 'DESIGN 3: what the model says is told in the moment it comes.',
  },
  {
    id: 'session-agent-refactor/3.1 components',
    quote:
      'Split `sessionAgent` into composable components with clear boundaries:\n│                      SessionAgent                           │\n│  (interface unchanged - backward compatible)                │\n│  │ RunContext   │───▶│ StreamRunner │───▶│ StepHandler  │  │',
    settled: 'DESIGN 6: `run.ts`, `turn.ts`, `tool-calls.ts`; `AgentSession` is on top.',
  },
  {
    id: 'session-agent-refactor/3.1 validate-stream-call-back',
    quote: '│  │ - validation │    │ - agent.Stream│   │ - callbacks  │  │',
  },
  {
    id: 'session-agent-refactor/3.1 queue-loop-mutate',
    quote: '│  │ - queueing   │    │ - loop ctrl  │    │ - mutations  │  │',
  },
  {
    id: 'session-agent-refactor/3.1 setup-complete-persist',
    quote: '│  │ - setup      │    │ - completion │    │ - persistence│  │',
  },
  {
    id: 'session-agent-refactor/3.1 run-state',
    quote:
      '│  │                    RunState                          │   │\n│  │  (replaces closure-captured variables)               │   │\n│  │  - currentAssistant, shouldSummarize, lspBatcher    │   │',
    settled: 'DESIGN 6: `OpenRun`, the state of one run.',
  },
  {
    id: 'session-agent-refactor/3.2 explicit-state',
    quote:
      '**Solution**: Explicit state struct passed to handlers.\n// run_state.go\n// RunState holds mutable state for a single Run() invocation.\ntype RunState struct {',
  },
  {
    id: 'session-agent-refactor/3.2 one-owner',
    quote: '// All fields are owned by the current goroutine during streaming.',
    settled: 'A run has one context, and a session one run at a time.',
  },
  {
    id: 'session-agent-refactor/3.2 fixed-call',
    quote: '// Immutable after creation\nCall            SessionAgentCall',
    settled: '`RunStart`.',
  },
  { id: 'session-agent-refactor/3.2 fixed-session', quote: 'Session         session.Session' },
  {
    id: 'session-agent-refactor/3.2 fixed-model',
    quote: 'Model           Model',
    settled: 'DESIGN 3: a fallback may step in for a provider that is overloaded; the log says so.',
  },
  {
    id: 'session-agent-refactor/3.2 fixed-system-prompt',
    quote: 'SystemPrompt    string\nPromptPrefix    string',
    settled: 'DESIGN 2: one `system` entry, appended at the start of a run if it is another one.',
  },
  {
    id: 'session-agent-refactor/3.2 fixed-tools',
    quote: 'Tools           []fantasy.AgentTool',
    settled:
      'DESIGN 2: part of the `system` entry; where others come to be offered within a run, as after an accepted plan, another entry says so.',
  },
  {
    id: 'session-agent-refactor/3.2 has-summary',
    quote: 'HasSummary      bool',
    settled: 'DESIGN 2: the context begins with the newest summary on the path.',
  },
  { id: 'session-agent-refactor/3.2 start-time', quote: 'StartTime       time.Time' },
  {
    id: 'session-agent-refactor/3.2 current-assistant',
    quote: '// Mutated during streaming\nCurrentAssistant *message.Message',
  },
  {
    id: 'session-agent-refactor/3.2 should-summarise',
    quote: 'ShouldSummarize  bool',
    settled: 'DESIGN 7: the size is checked before each request.',
  },
  {
    id: 'session-agent-refactor/3.2 services',
    quote: '// Services (immutable references)\nMessages message.Service\nSessions session.Service',
    settled: 'DESIGN 6: there is one session, and `session.append`.',
  },
  {
    id: 'session-agent-refactor/3.2 new-run-state',
    quote:
      '// NewRunState creates state from a SessionAgentCall.\nfunc NewRunState(call SessionAgentCall, ...) (*RunState, error)',
  },
  {
    id: 'session-agent-refactor/3.2 finish',
    quote: '// Finish cleans up resources (flushes LSP batcher, etc).\nfunc (s *RunState) Finish(ctx context.Context)',
    settled: 'What was streamed is out of the draft when its entry is there.',
  },
  {
    id: 'session-agent-refactor/3.2 injected-state',
    quote: 'Testing can inject mock state.',
    settled: '`run(start, parts, signal)` takes all that it is made of.',
  },
  {
    id: 'session-agent-refactor/3.2 named-callbacks',
    quote:
      '**Solution**: Extract callbacks into a handler struct with named methods.\n// StepHandler processes streaming events from fantasy.Agent.\ntype StepHandler struct {\nstate    *RunState\nmessages message.Service\nsessions session.Service\nfunc NewStepHandler(state *RunState, msgs message.Service, sess session.Service) *StepHandler',
    settled: 'DESIGN 6: callback sugar, `callBack(callbacks)`.',
  },
  {
    id: 'session-agent-refactor/3.2 reasoning-callbacks',
    quote:
      '// Reasoning callbacks\nfunc (h *StepHandler) OnReasoningStart(id string, reasoning fantasy.ReasoningContent) error\nfunc (h *StepHandler) OnReasoningDelta(id string, text string) error\nfunc (h *StepHandler) OnReasoningEnd(id string, reasoning fantasy.ReasoningContent) error',
    settled: 'Told as `delta` events of kind `reasoning`.',
  },
  {
    id: 'session-agent-refactor/3.2 content-callback',
    quote: '// Content callbacks\nfunc (h *StepHandler) OnTextDelta(id string, text string) error',
  },
  {
    id: 'session-agent-refactor/3.2 tool-callbacks',
    quote:
      '// Tool callbacks\nfunc (h *StepHandler) OnToolInputStart(id string, toolName string) error\nfunc (h *StepHandler) OnToolCall(tc fantasy.ToolCallContent) error\nfunc (h *StepHandler) OnToolResult(result fantasy.ToolResultContent) error',
  },
  {
    id: 'session-agent-refactor/3.2 step-finish-callback',
    quote: '// Lifecycle callbacks\nfunc (h *StepHandler) OnStepFinish(stepResult fantasy.StepResult) error',
    settled: '`message` lines with `stop_reason` and `usage`.',
  },
  {
    id: 'session-agent-refactor/3.2 retry-callback',
    quote: 'func (h *StepHandler) OnRetry(err *fantasy.ProviderError, delay time.Duration)',
    settled: '`auto_retry_start`, with the delay.',
  },
  {
    id: 'session-agent-refactor/3.2 prepare-step',
    quote:
      '// PrepareStep is special - it creates the assistant message and sets up context.\nfunc (h *StepHandler) PrepareStep(ctx context.Context, opts fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error)',
    settled:
      'DESIGN 3: the id of the answer is made before the request is sent; its entry is appended when it is finished.',
  },
  {
    id: 'session-agent-refactor/3.2 testable-callbacks',
    quote: '**Benefit**: Each callback is independently testable.\nAdding a new callback is a single method addition.',
  },
  {
    id: 'session-agent-refactor/3.2 one-interaction',
    quote:
      '**Solution**: Separate orchestrator that handles the streaming lifecycle.\n// StreamRunner executes a single streaming interaction.\ntype StreamRunner struct {\nagent      fantasy.Agent\nhandler    *StepHandler\nstate      *RunState\nstopChecks []fantasy.StopCondition\nfunc NewStreamRunner(agent fantasy.Agent, handler *StepHandler, state *RunState) *StreamRunner',
    settled: 'DESIGN 6: `turn`.',
  },
  {
    id: 'session-agent-refactor/3.2 stop-checks',
    quote: 'stopChecks []fantasy.StopCondition',
    settled: 'Limits of turns, calls, tokens, cost, time and log.',
  },
  {
    id: 'session-agent-refactor/3.2 stream-result',
    quote:
      '// Run executes the stream and returns the result.\nfunc (r *StreamRunner) Run(ctx context.Context) (*fantasy.AgentResult, error)',
  },
  {
    id: 'session-agent-refactor/3.2 no-queue',
    quote:
      '// Does NOT handle queue processing - that\'s the caller\'s responsibility.\n**Benefit**: Clear separation between "execute one interaction" and "manage the queue".',
  },
  {
    id: 'session-agent-refactor/3.2 stream-call',
    quote:
      '// buildStreamCall constructs the fantasy.AgentStreamCall with all callbacks wired.\nfunc (r *StreamRunner) buildStreamCall() fantasy.AgentStreamCall',
    settled: '`model.prepare(request)` is pure and says what will be sent.',
  },
  {
    id: 'session-agent-refactor/3.3 coordinator',
    quote:
      'After extracting components, `Run()` becomes a coordinator:\nfunc (a *sessionAgent) Run(ctx context.Context, call SessionAgentCall) (*fantasy.AgentResult, error) {',
  },
  {
    id: 'session-agent-refactor/3.3 validate',
    quote: '// 1. Validate\nif err := validateCall(call); err != nil {\nreturn nil, err',
  },
  {
    id: 'session-agent-refactor/3.3 queue-if-busy',
    quote: '// 2. Queue if busy\nif a.IsSessionBusy(call.SessionID) {\na.enqueue(call)\nreturn nil, nil',
  },
  {
    id: 'session-agent-refactor/3.3 setup',
    quote: '// 3. Setup state\nstate, err := a.buildRunState(ctx, call)\nif err != nil {\nreturn nil, err',
  },
  { id: 'session-agent-refactor/3.3 finish-state', quote: 'defer state.Finish(ctx)' },
  {
    id: 'session-agent-refactor/3.3 title-of-first-message',
    quote:
      '// 4. Async title generation (first message only)\nif state.IsFirstMessage() {\ngo a.generateTitle(ctx, call.SessionID, call.Prompt)',
  },
  {
    id: 'session-agent-refactor/3.3 create-user-message',
    quote: '// 5. Create user message\nif _, err := a.createUserMessage(ctx, call); err != nil {\nreturn nil, err',
  },
  {
    id: 'session-agent-refactor/3.3 execute-stream',
    quote:
      '// 6. Execute stream\nresult, err := a.executeStream(ctx, state)\nfunc (a *sessionAgent) executeStream(ctx context.Context, state *RunState) (*fantasy.AgentResult, error) {',
  },
  {
    id: 'session-agent-refactor/3.3 handle-completion',
    quote:
      '// 7. Handle completion (summarization, queue processing)\nreturn a.handleCompletion(ctx, call, state, result, err)',
  },
  {
    id: 'session-agent-refactor/3.3 prompt-and-tools',
    quote:
      'agent := fantasy.NewAgent(state.Model.Model,\nfantasy.WithSystemPrompt(state.SystemPrompt),\nfantasy.WithTools(state.Tools...),',
  },
  {
    id: 'session-agent-refactor/3.3 handler-and-runner',
    quote:
      'handler := NewStepHandler(state, a.messages, a.sessions)\nrunner := NewStreamRunner(agent, handler, state)\nreturn runner.Run(genCtx)',
  },
  {
    id: 'session-agent-refactor/3.3 cancel',
    quote:
      'genCtx, cancel := context.WithCancel(ctx)\na.activeRequests.Set(state.Call.SessionID, cancel)\ndefer a.activeRequests.Del(state.Call.SessionID)\ndefer cancel()',
  },
  {
    id: 'session-agent-refactor/3.3 handle-error',
    quote:
      'func (a *sessionAgent) handleCompletion(\nctx context.Context,\ncall SessionAgentCall,\nstate *RunState,\nresult *fantasy.AgentResult,\nerr error,\n) (*fantasy.AgentResult, error) {\n// Error handling (existing logic, but cleaner)\nif err != nil {\nreturn a.handleError(ctx, state, err)',
  },
  {
    id: 'session-agent-refactor/3.3 summarise',
    quote:
      '// Auto-summarization\nif state.ShouldSummarize {\nif err := a.triggerSummarization(ctx, call, state); err != nil {\nreturn nil, err',
  },
  {
    id: 'session-agent-refactor/3.3 process-queue',
    quote: '// Process queued messages (iterative, not recursive)\nreturn a.processQueue(ctx, call.SessionID, result)',
  },
  {
    id: 'session-agent-refactor/3.4 files',
    quote:
      'internal/agent/\n├── agent.go              # SessionAgent interface + constructor (slimmed)\n├── run_state.go          # RunState struct and helpers\n├── step_handler.go       # StepHandler with all callbacks\n├── stream_runner.go      # StreamRunner orchestration\n├── error_handler.go      # Error handling extracted from Run()\n├── queue.go              # Queue management (enqueue, dequeue, processQueue)\n├── summarize.go          # Summarization logic (already partially separate)\n├── title.go              # Title generation (already partially separate)\n├── cache.go              # applyCacheMarkers and related\n├── ... (existing files unchanged)',
    settled: 'DESIGN 5: one concern a file; the names are ours.',
  },
  { id: 'session-agent-refactor/4 token-counts', quote: 'Token counts unchanged.' },
  { id: 'session-agent-refactor/4 iterative-queue', quote: 'Make queue processing iterative instead of recursive' },
] as const satisfies Requirement[]
