import type { Requirement } from '../requirement.ts'

/** Sections 1 to 3: what the layer is for, and its loop. */
export const loop = [
  {
    id: 'agent-session/1 what-it-manages',
    quote:
      "While `SessionManager` handles the persistence and tree-structured history, `AgentSession` manages the agent's lifecycle, model interactions, thinking levels, auto-compaction, auto-retry, and tool execution.",
  },
  {
    id: 'agent-session/2 lifecycle',
    quote: '**Agent Lifecycle**: Manage initialization, state restoration, and shutdown of an agent.',
  },
  {
    id: 'agent-session/2 prompting',
    quote:
      '**Orchestrated Prompting**: Handle skill expansion, prompt templates, and streaming interaction (steer/follow-up).',
  },
  {
    id: 'agent-session/2 models',
    quote: '**Multi-Model Support**: Manage model selection, API key validation, and model cycling.',
  },
  {
    id: 'agent-session/2 context-management',
    quote:
      '**Context Management**: Orchestrate manual and automatic compaction based on context usage and overflow errors.',
  },
  {
    id: 'agent-session/2 resilience',
    quote: '**Resilience**: Implement automatic retry logic with exponential backoff for transient provider errors.',
  },
  {
    id: 'agent-session/2 tools',
    quote: '**Tool Orchestration**: Manage tool registration and execution, including bash execution.',
  },
  {
    id: 'agent-session/2 events',
    quote: '**Event Propagation**: Proxy agent events and emit session-specific events (e.g., compaction progress).',
  },
  {
    id: 'agent-session/2 no-storage-of-its-own',
    quote: '**Persistence Implementation**: Storage logic (JSONL, tree traversal) belongs to `SessionManager`.',
    settled: 'DESIGN 6: it belongs to `SessionStore` and `Session`; any store will do.',
  },
  {
    id: 'agent-session/2 model-decides',
    quote: '**Reasoning Logic**: The actual decision-making is handled by the underlying LLM/Agent.',
  },
  {
    id: 'agent-session/2 no-screen',
    quote: '**UI Concerns**: This is an orchestration layer, not a UI component.',
  },
  {
    id: 'agent-session/3 autonomous-loop',
    quote:
      'The `AgentSession` implements an autonomous agent loop that continues to execute as long as there are pending tasks (tool calls or follow-up messages).',
  },
  {
    id: 'agent-session/3.1 three-layers',
    quote: 'The loop operates in three nested layers:',
  },
  {
    id: 'agent-session/3.1 outer-loop',
    quote: '**Outer Loop (Autonomous Session)**:\nContinues as long as there are **Follow-up** messages queued.',
    settled: 'DESIGN 3: each follow-up is a run of its own.',
  },
  {
    id: 'agent-session/3.1 without-user',
    quote: 'This allows the agent to perform multi-step autonomous tasks without user intervention.',
  },
  {
    id: 'agent-session/3.1 middle-loop',
    quote:
      '**Middle Loop (Turn Management)**:\nContinues as long as the LLM emits **Tool Calls** OR there are **Steering** messages queued.',
  },
  {
    id: 'agent-session/3.1 turn',
    quote: 'A "Turn" consists of sending the current context to the LLM and processing its response.',
  },
  {
    id: 'agent-session/3.1 context-preparation',
    quote:
      '**Inner Logic (Step Execution)**:\n**Context Preparation**: `AgentMessage` history is converted to LLM-compatible `Message` format.',
    settled: 'DESIGN 2: `buildContext` gives messages that a provider accepts; the adapter puts them into its format.',
  },
  {
    id: 'agent-session/3.1 response-streams',
    quote: '**Assistant Response**: The LLM streams its response.',
  },
  {
    id: 'agent-session/3.1 calls-collected',
    quote: 'If the response contains tool calls, they are collected.',
  },
  {
    id: 'agent-session/3.1 sequential',
    quote: '**Tool Execution**: Each tool call is executed sequentially.',
    settled: 'DESIGN 3: sequential by default; tools that declare themselves read-only may run side by side.',
  },
  {
    id: 'agent-session/3.1 steering-checked',
    quote:
      '**Steering Interruption**: Between *each* tool execution, the loop checks for "Steer" messages from the user.',
  },
  {
    id: 'agent-session/3.1 steering-skips',
    quote:
      "If a steering message exists, remaining tool calls in the current turn are skipped to prioritize the user's new input.",
    settled: 'DESIGN 3: policy `skip-remaining`, the default; `after-batch` and `interrupt` are others.',
  },
  {
    id: 'agent-session/3.2 turn-finished',
    quote:
      'The agent "waits" for user input only when:\nThe current turn has finished (all tool calls executed or skipped).',
  },
  { id: 'agent-session/3.2 no-steer-waits', quote: 'The steering queue is empty.' },
  { id: 'agent-session/3.2 no-follow-up-waits', quote: 'The follow-up queue is empty.' },
  { id: 'agent-session/3.2 model-stopped', quote: 'The LLM has stopped without requesting more tools.' },
  {
    id: 'agent-session/3.2 run-completes',
    quote:
      'At this point, the `Run` method completes, and the orchestration layer waits for the next `Prompt()` call from the user interface.',
  },
  {
    id: 'agent-session/3.3 selection',
    quote: '**Selection**: Filter LLM response for `tool_use` content blocks.',
  },
  {
    id: 'agent-session/3.3 lookup',
    quote: '**Dispatch**: For each tool call:\nLookup the tool implementation in the `ToolRegistry`.',
    settled:
      'The tools that the session was given are the registry; a name that is not among them is answered with those that are.',
  },
  { id: 'agent-session/3.3 validation', quote: "Validate arguments against the tool's schema." },
  {
    id: 'agent-session/3.3 start-event',
    quote: 'Emit `tool_execution_start` event.',
    settled: 'DESIGN 3: a durable `tool_start` record; the view of tool events calls it `tool_started`.',
  },
  {
    id: 'agent-session/3.3 execution',
    quote: "Execute the tool's `Run` logic (e.g., file read, bash execution).",
  },
  {
    id: 'agent-session/3.3 end-event',
    quote: 'Record result (success or error) and emit `tool_execution_end`.',
    settled:
      'DESIGN 3: the result entry is the event; the view of tool events calls it `tool_completed` or `tool_failed`.',
  },
  {
    id: 'agent-session/3.3 result-injection',
    quote:
      '**Result Injection**: Concatenate all tool results into a single `toolResult` message and append it to the conversation history.',
    settled: 'DESIGN 7: one entry each when it finishes; merged for the provider by the adapter.',
  },
  { id: 'agent-session/3.4 steer-interrupts', quote: '**Steer (Immediate)**: High-priority interrupt.' },
  {
    id: 'agent-session/3.4 steer-before-next-turn',
    quote:
      'It injects a user message *before* the next LLM turn and skips any pending tool results from the current assistant message.',
    settled: 'DESIGN 3: every skipped call gets a result that says so.',
  },
  {
    id: 'agent-session/3.4 steer-use',
    quote: 'Use case: "Stop what you\'re doing and look at this error instead."',
  },
  { id: 'agent-session/3.4 follow-up-waits', quote: '**Follow-up (Queued)**: Low-priority continuation.' },
  {
    id: 'agent-session/3.4 follow-up-after-the-end',
    quote:
      'It injects a user message only *after* the agent has naturally completed its current line of thought (no more tools requested).',
    settled: 'DESIGN 4: after a run that did not complete, what waits is held.',
  },
  { id: 'agent-session/3.4 follow-up-use', quote: 'Use case: "Once you finish this refactor, run the tests."' },
  {
    id: 'agent-session/3.5 initial-message',
    quote: 'func RunLoop(msg AgentMessage) {\n// 1. Queue initial message\npendingMessages = [msg]',
    settled: 'DESIGN 4: a prompt to an idle session is a user message at once, without a place in the queue.',
  },
  {
    id: 'agent-session/3.5 outer-loop',
    quote: '// Outer Loop: Autonomous Mult-Turn (Follow-ups)\nfor {\nhasMoreToolCalls := true',
  },
  {
    id: 'agent-session/3.5 middle-loop',
    quote: '// Middle Loop: Current Turn (Tools & Steering)\nfor hasMoreToolCalls || len(pendingMessages) > 0 {',
  },
  {
    id: 'agent-session/3.5 inject-pending',
    quote:
      '// Inject any pending messages (User prompts, Follow-ups, Steering)\ncontext.Messages.Append(pendingMessages...)\npendingMessages = []',
    settled: 'DESIGN 7: one line delivers and dequeues.',
  },
  {
    id: 'agent-session/3.5 stream',
    quote: '// A. Stream Assistant Response\nstream := llm.Stream(context)',
  },
  {
    id: 'agent-session/3.5 until-done-or-interrupted',
    quote: 'assistantMsg := stream.FullMessage() // Blocks until done or interrupted',
  },
  { id: 'agent-session/3.5 answer-appended', quote: 'context.Messages.Append(assistantMsg)' },
  {
    id: 'agent-session/3.5 more-calls',
    quote: '// B. Handle Tool Calls\ntoolCalls := assistantMsg.ToolCalls\nhasMoreToolCalls = len(toolCalls) > 0',
  },
  {
    id: 'agent-session/3.5 each-call',
    quote: 'for i, toolCall := range toolCalls {\n// Execute Tool\nresult := tools.Execute(toolCall)',
  },
  { id: 'agent-session/3.5 result-appended', quote: 'context.Messages.Append(result)' },
  {
    id: 'agent-session/3.5 steering-gap',
    quote:
      '// C. Check for Steering Interrupts (The "Steering Gap")\n// If user typed something while tool was running, we interrupt immediately.\nif len(steeringQueue) > 0 {',
    settled: 'DESIGN 3: the running call is stopped as well only under policy `interrupt`.',
  },
  {
    id: 'agent-session/3.5 drain-steers',
    quote: 'pendingMessages = steeringQueue.Drain()',
  },
  { id: 'agent-session/3.5 skip-remaining', quote: '// SKIP remaining tool calls in this turn' },
  {
    id: 'agent-session/3.5 new-response',
    quote:
      '// The loop continues, and these pending messages will be\n// injected at the top of the loop, triggering a NEW LLM response.\nhasMoreToolCalls = true\nbreak',
  },
  {
    id: 'agent-session/3.5 follow-ups-now',
    quote:
      '// D. Check for Follow-up Messages (Autonomous Continuation)\n// If the agent queued a follow-up (e.g., "Run tests next"), process it now.\nif len(followUpQueue) > 0 {',
  },
  {
    id: 'agent-session/3.5 drain-follow-ups',
    quote: 'pendingMessages = followUpQueue.Drain()',
    settled: 'DESIGN 7: one at a time by default.',
  },
  { id: 'agent-session/3.5 loop-back', quote: 'continue // Loop back to start a new turn' },
  {
    id: 'agent-session/3.5 idle',
    quote: '// Loop Ends: No tools, no steering, no follow-ups. Agent is Idle.\nbreak',
  },
] as const satisfies Requirement[]
