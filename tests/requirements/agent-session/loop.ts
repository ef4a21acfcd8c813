import type { Requirement } from '../requirement.ts'

/** Sections 1 to 3: purpose and loop. */
export const loop = [
  {
    id: 'agent-session/1 what-it-manages',
    says: '`AgentSession` manages lifecycle, models, thinking levels, compaction, retries and tools; the session layer stores.',
    lines: { '1. Overview': ['6b4af018'] },
  },
  {
    id: 'agent-session/2 lifecycle',
    says: '`AgentSession` initializes, restores and shuts down an agent.',
    lines: { Goals: ['ac569f8c'] },
  },
  {
    id: 'agent-session/2 prompting',
    says: '`AgentSession` expands skills and templates and accepts steers and follow-ups.',
    lines: { Goals: ['c960a954'] },
  },
  {
    id: 'agent-session/2 models',
    says: '`AgentSession` selects models, checks their keys and cycles through them.',
    lines: { Goals: ['96701908'] },
  },
  {
    id: 'agent-session/2 context-management',
    says: '`AgentSession` compacts on request, at a usage threshold and after overflow errors.',
    lines: { Goals: ['ff349cdc'] },
  },
  {
    id: 'agent-session/2 resilience',
    says: '`AgentSession` retries transient provider errors with exponential backoff.',
    lines: { Goals: ['5e7e4631'] },
  },
  {
    id: 'agent-session/2 tools',
    says: '`AgentSession` registers and executes tools, including bash.',
    lines: { Goals: ['48987208'] },
  },
  {
    id: 'agent-session/2 events',
    says: '`AgentSession` forwards agent events and emits events of its own.',
    lines: { Goals: ['f018c6ab'] },
  },
  {
    id: 'agent-session/2 no-storage-of-its-own',
    says: '`AgentSession` has no storage code.',
    lines: { 'Non-Goals': ['b8df791f'] },
    settled: 'Storage belongs to `SessionStore` and `Session`; any store works.',
  },
  { id: 'agent-session/2 model-decides', says: 'The model makes the decisions.', lines: { 'Non-Goals': ['407b24a6'] } },
  {
    id: 'agent-session/2 no-screen',
    says: '`AgentSession` is not a user interface.',
    lines: { 'Non-Goals': ['6ccc1d50'] },
  },
  {
    id: 'agent-session/3 autonomous-loop',
    says: 'The loop continues while tool calls or follow-ups are pending.',
    lines: { '3. Control Flow & Agent Loop': ['b216af36'] },
  },
  {
    id: 'agent-session/3.1 three-layers',
    says: 'The loop has an outer, a middle and an inner layer.',
    lines: { '3.1. The Main Loop (`Run`)': ['787080f4'] },
  },
  {
    id: 'agent-session/3.1 outer-loop',
    says: 'The outer loop continues while follow-ups are queued.',
    lines: { '3.1. The Main Loop (`Run`)': ['b2fea3ec', '5f0e0299'] },
    settled: 'Each follow-up is a run of its own.',
  },
  {
    id: 'agent-session/3.1 without-user',
    says: 'The agent performs tasks of several steps without the user.',
    lines: { '3.1. The Main Loop (`Run`)': ['79061135'] },
  },
  {
    id: 'agent-session/3.1 middle-loop',
    says: 'The middle loop continues while there are tool calls or queued steers.',
    lines: { '3.1. The Main Loop (`Run`)': ['f97aa98a', '58b17346'] },
  },
  {
    id: 'agent-session/3.1 turn',
    says: 'A turn sends the context to the model and processes the response.',
    lines: { '3.1. The Main Loop (`Run`)': ['83157541'] },
  },
  {
    id: 'agent-session/3.1 context-preparation',
    says: 'The history is converted to the format of the model.',
    lines: { '3.1. The Main Loop (`Run`)': ['b3c4e35b', 'c68803e2'] },
    settled: '`buildContext` builds provider-neutral messages; the adapter converts them.',
  },
  {
    id: 'agent-session/3.1 response-streams',
    says: 'The model response is streamed.',
    lines: { '3.1. The Main Loop (`Run`)': ['3a46c3e6'] },
  },
  {
    id: 'agent-session/3.1 calls-collected',
    says: 'The loop collects the tool calls of a response.',
    lines: { '3.1. The Main Loop (`Run`)': ['68ce5fcc'] },
  },
  {
    id: 'agent-session/3.1 sequential',
    says: 'Tool calls run one after another.',
    lines: { '3.1. The Main Loop (`Run`)': ['2db241ab'] },
    settled: 'This is the default; tools that declare themselves read-only can run in parallel.',
  },
  {
    id: 'agent-session/3.1 steering-checked',
    says: 'The loop checks for steers after each tool call.',
    lines: { '3.1. The Main Loop (`Run`)': ['b8f1d934'] },
  },
  {
    id: 'agent-session/3.1 steering-skips',
    says: 'A pending steer skips the remaining tool calls of the turn.',
    lines: { '3.1. The Main Loop (`Run`)': ['0eaf4f7b'] },
    settled: 'This is the default policy, `skip-remaining`; `after-batch` and `interrupt` are the others.',
  },
  {
    id: 'agent-session/3.2 turn-finished',
    says: 'The agent waits for input only after all tool calls of the turn.',
    lines: { '3.2. Interaction & Waiting for Input': ['21c52bb6', '8d51f0a5'] },
  },
  {
    id: 'agent-session/3.2 no-steer-waits',
    says: 'The agent waits for input only when no steer is pending.',
    lines: { '3.2. Interaction & Waiting for Input': ['526df6a7'] },
  },
  {
    id: 'agent-session/3.2 no-follow-up-waits',
    says: 'The agent waits for input only when no follow-up is pending.',
    lines: { '3.2. Interaction & Waiting for Input': ['ce662a99'] },
  },
  {
    id: 'agent-session/3.2 model-stopped',
    says: 'The agent waits for input only when the model requests no more tools.',
    lines: { '3.2. Interaction & Waiting for Input': ['d36a5cb5'] },
  },
  {
    id: 'agent-session/3.2 run-completes',
    says: 'The run then completes, and the session waits for the next prompt.',
    lines: { '3.2. Interaction & Waiting for Input': ['df72d644'] },
  },
  {
    id: 'agent-session/3.3 selection',
    says: 'The loop selects the `tool_use` blocks of the response.',
    lines: { '3.3. Tool Execution Flow': ['d6bcae99'] },
  },
  {
    id: 'agent-session/3.3 lookup',
    says: 'The loop looks up each tool by name.',
    lines: { '3.3. Tool Execution Flow': ['61c0f3aa', '2b1fa1d4'] },
    settled: 'The registry is the tool list of the session; an unknown name is answered with the known names.',
  },
  {
    id: 'agent-session/3.3 validation',
    says: 'The loop validates arguments with the schema of the tool.',
    lines: { '3.3. Tool Execution Flow': ['7cb7b610'] },
  },
  {
    id: 'agent-session/3.3 start-event',
    says: 'The loop emits an event when a tool starts.',
    lines: { '3.3. Tool Execution Flow': ['bedbc902'] },
    settled: 'A durable `tool_start` record; tool events call it `tool_started`.',
  },
  {
    id: 'agent-session/3.3 execution',
    says: 'The loop executes the tool.',
    lines: { '3.3. Tool Execution Flow': ['537539be'] },
  },
  {
    id: 'agent-session/3.3 end-event',
    says: 'The loop records each result and emits an event.',
    lines: { '3.3. Tool Execution Flow': ['1a7c18dd'] },
    settled: 'The result entry is the event; tool events call it `tool_completed` or `tool_failed`.',
  },
  {
    id: 'agent-session/3.3 result-injection',
    says: 'The tool results become part of the conversation history.',
    lines: { '3.3. Tool Execution Flow': ['f2ba93bd'] },
    settled: 'Each result is an entry of its own; the adapter merges them for the provider.',
  },
  {
    id: 'agent-session/3.4 steer-interrupts',
    says: 'A steer interrupts with high priority.',
    lines: { '3.4. Steering vs. Follow-up': ['f99201ad'] },
  },
  {
    id: 'agent-session/3.4 steer-before-next-turn',
    says: 'A steer is delivered before the next model request and skips pending calls.',
    lines: { '3.4. Steering vs. Follow-up': ['d3f7216e'] },
    settled: 'Each skipped call gets a result that says so.',
  },
  {
    id: 'agent-session/3.4 steer-use',
    says: 'A user can redirect the agent during its work.',
    lines: { '3.4. Steering vs. Follow-up': ['5a4c42b7'] },
  },
  {
    id: 'agent-session/3.4 follow-up-waits',
    says: 'A follow-up has low priority and waits.',
    lines: { '3.4. Steering vs. Follow-up': ['6c777f19'] },
  },
  {
    id: 'agent-session/3.4 follow-up-after-the-end',
    says: 'A follow-up is delivered after the agent stops requesting tools.',
    lines: { '3.4. Steering vs. Follow-up': ['8058fecd'] },
    settled: 'After a run that did not complete, queued messages are held.',
  },
  {
    id: 'agent-session/3.4 follow-up-use',
    says: 'A user can queue the next task during a run.',
    lines: { '3.4. Steering vs. Follow-up': ['7c04f06a'] },
  },
  {
    id: 'agent-session/3.5 initial-message',
    says: 'The loop starts with the prompt as its pending message.',
    lines: { '3.5. Loop Pseudocode': ['2217220c', '99dc7ad2', 'ff343c9a'] },
    settled: 'A prompt to an idle session becomes a user message directly, without the queue.',
  },
  {
    id: 'agent-session/3.5 outer-loop',
    says: 'The outer loop repeats for follow-ups.',
    lines: { '3.5. Loop Pseudocode': ['a0bcda45', 'c2f63c5d', '585ace90'] },
  },
  {
    id: 'agent-session/3.5 middle-loop',
    says: 'The middle loop repeats for tool calls and pending messages.',
    lines: { '3.5. Loop Pseudocode': ['ff6a036b', '005f4b0e'] },
  },
  {
    id: 'agent-session/3.5 inject-pending',
    says: 'Pending messages enter the context before the request.',
    lines: { '3.5. Loop Pseudocode': ['a58c86ab', '1bb4efb6', '6422c965'] },
    settled: 'One line delivers and dequeues a message.',
  },
  {
    id: 'agent-session/3.5 stream',
    says: 'The loop streams a response for the current context.',
    lines: { '3.5. Loop Pseudocode': ['39d9134b', '0b6be4ff'] },
  },
  {
    id: 'agent-session/3.5 until-done-or-interrupted',
    says: 'The loop waits until the response is complete or interrupted.',
    lines: { '3.5. Loop Pseudocode': ['edbef3ab'] },
  },
  {
    id: 'agent-session/3.5 answer-appended',
    says: 'The loop appends the response to the context.',
    lines: { '3.5. Loop Pseudocode': ['e08e1b4d'] },
  },
  {
    id: 'agent-session/3.5 more-calls',
    says: 'The loop continues if the response has tool calls.',
    lines: { '3.5. Loop Pseudocode': ['af4460ef', 'f3791eea', '71df0791'] },
  },
  {
    id: 'agent-session/3.5 each-call',
    says: 'The loop executes each tool call.',
    lines: { '3.5. Loop Pseudocode': ['8e580599', '2ad81cb4', '0232e862'] },
  },
  {
    id: 'agent-session/3.5 result-appended',
    says: 'The loop appends each tool result to the context.',
    lines: { '3.5. Loop Pseudocode': ['49ff034b'] },
  },
  {
    id: 'agent-session/3.5 steering-gap',
    says: 'The loop handles steers that arrived during a tool call right after it.',
    lines: { '3.5. Loop Pseudocode': ['00039ba2', '09998dcc', '280b669d'] },
    settled: 'Only the policy `interrupt` also stops the running call.',
  },
  {
    id: 'agent-session/3.5 drain-steers',
    says: 'The loop takes all pending steers.',
    lines: { '3.5. Loop Pseudocode': ['89e5aa03'] },
  },
  {
    id: 'agent-session/3.5 skip-remaining',
    says: 'A steer skips the other tool calls of the turn.',
    lines: { '3.5. Loop Pseudocode': ['f8fe2e05'] },
  },
  {
    id: 'agent-session/3.5 new-response',
    says: 'The steers lead to a new model response.',
    lines: { '3.5. Loop Pseudocode': ['32b7368e', '509fd6b8', 'a0e0d00d', '14ebe56a'] },
  },
  {
    id: 'agent-session/3.5 follow-ups-now',
    says: 'The loop processes queued follow-ups when the turn is over.',
    lines: { '3.5. Loop Pseudocode': ['e5034cbf', '3ac7b5fa', 'a89504a0'] },
  },
  {
    id: 'agent-session/3.5 drain-follow-ups',
    says: 'The loop takes follow-ups from the queue.',
    lines: { '3.5. Loop Pseudocode': ['931a3a7a'] },
    settled: 'By default it takes one at a time.',
  },
  {
    id: 'agent-session/3.5 loop-back',
    says: 'A follow-up starts a new turn.',
    lines: { '3.5. Loop Pseudocode': ['ec99d54b'] },
  },
  {
    id: 'agent-session/3.5 idle',
    says: 'Without tool calls, steers and follow-ups the agent is idle.',
    lines: { '3.5. Loop Pseudocode': ['f0710397', '14ebe56a'] },
  },
] as const satisfies readonly Requirement[]
