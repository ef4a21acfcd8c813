import type { Requirement } from '../requirement.ts'

/** The agent: its parts, sending and canceling. */
export const agent = [
  {
    id: 'agent-module/intro handles',
    says: 'The agent calls models, runs tools, streams responses and manages sessions.',
    lines: { 'Agent Module': ['ab9ca79c'], Overview: ['a5ef4ca0'] },
  },
  {
    id: 'agent-module/intro dependencies',
    says: 'The agent depends on a model, tools and a way to publish events.',
    lines: { Overview: ['73773204'] },
    settled: 'A `Model`, a list of `Tool`s, and `subscribe`.',
  },
  {
    id: 'agent-module/agent contract',
    says: 'One interface covers sending messages, history and control of a run.',
    lines: { Architecture: ['685f5e52'], 'Data Types': ['52edecfe'], 'Agent Interface': ['2130da7a', '9d3edd70'] },
  },
  {
    id: 'agent-module/agent alternatives',
    says: 'Tests and other programs can supply their own agent.',
    lines: { 'Agent Interface': ['2b2af96e'], 'Design Decisions': ['653fae51'] },
    settled: 'Any object with these methods is an agent. With a scripted model, tests use the real loop.',
  },
  {
    id: 'agent-module/agent send',
    says: '`send` performs a complete request and streams the response.',
    lines: {
      'Data Types': ['f3cf482d'],
      'Agent Execution Flow': ['a383e9fc', '60388065'],
      'Agent Interface': ['27716b5e'],
    },
    settled: 'Options and callbacks are one object; it resolves with the outcome of the run.',
  },
  {
    id: 'agent-module/agent set-system-prompt',
    says: '`setSystemPrompt` replaces the system prompt.',
    lines: { 'Data Types': ['523a7b50', 'fd8a855e'], 'Agent Interface': ['a0343d84'] },
  },
  {
    id: 'agent-module/agent set-tools',
    says: '`setTools` replaces the tools.',
    lines: { 'Data Types': ['7272107f', '7b79a220'], 'Agent Interface': ['0afbc0b1'] },
  },
  {
    id: 'agent-module/agent history',
    says: '`history` returns the messages of a session.',
    lines: { 'Data Types': ['da1ae290'], 'Agent Interface': ['edf63f4e'] },
  },
  {
    id: 'agent-module/agent clear',
    says: '`clear` empties the conversation of a session.',
    lines: { 'Data Types': ['2a93f331'], 'Session Lifecycle': ['6ba34016'], 'Agent Interface': ['9ffc40d1'] },
    settled: 'Nothing is removed; a new conversation starts beside the old one.',
  },
  {
    id: 'agent-module/agent cancel',
    says: '`cancel` stops the request of a session.',
    lines: {
      'Data Types': ['15762fc1'],
      'Request Cancellation': ['b4a8a432', '0799e2ac'],
      'Agent Interface': ['c5909e07'],
    },
  },
  {
    id: 'agent-module/agent is-busy',
    says: '`isBusy` tells whether a session has a request in progress.',
    lines: { 'Data Types': ['272f2c93'], 'Request Cancellation': ['11afdd77'], 'Agent Interface': ['9f6bc324'] },
  },
  {
    id: 'agent-module/agent new',
    says: 'A function creates an agent from its configuration.',
    lines: { 'Data Types': ['dad83ba5', '44a717c2'], 'DefaultAgent Additional Methods': ['45eadf6f'] },
    settled: '`createAgent(config)`.',
  },
  {
    id: 'agent-module/agent set-model',
    says: '`setModel` replaces the model.',
    lines: { 'Data Types': ['8290c75d', '4eb4f5fd'], 'DefaultAgent Additional Methods': ['d91198c6'] },
  },
  {
    id: 'agent-module/agent sessions',
    says: 'The agent gives access to its session store.',
    lines: {
      Architecture: ['9944e114', 'fa8599d1'],
      'Data Types': ['caf61f32', '4ee9d3bb'],
      'DefaultAgent Additional Methods': ['5778b23d'],
    },
    settled: '`agent.sessions`.',
  },
  {
    id: 'agent-module/agent own-loop',
    says: 'A loop streams from the model and executes tools.',
    lines: { Architecture: ['d9a31934', '789c12ba', '72daeca0'] },
    settled: 'The loop is our own.',
  },
  {
    id: 'agent-module/agent consumers',
    says: 'The command creates the agent and the screen sends through it.',
    lines: { Architecture: ['8080f5a5', '0d318540'] },
    settled: 'The command opens the session; the screen calls `prompt` on its handle.',
  },
  { id: 'agent-module/config model', says: 'The configuration has a model.', lines: { 'Data Types': ['867efdd3'] } },
  {
    id: 'agent-module/config system-prompt',
    says: 'The configuration has a system prompt.',
    lines: { 'Data Types': ['3b1a6643'] },
  },
  { id: 'agent-module/config tools', says: 'The configuration has tools.', lines: { 'Data Types': ['043376e0'] } },
  {
    id: 'agent-module/config working-dir',
    says: 'The configuration has a working directory.',
    lines: { 'Data Types': ['cf14d016', '3827612e'] },
  },
  {
    id: 'agent-module/config hub',
    says: 'The configuration has a place to publish events.',
    lines: { 'Data Types': ['0b699458', 'd8c972cb'] },
    settled: 'There is no hub: callers use `subscribe` and the event views.',
  },
  {
    id: 'agent-module/state active-requests',
    says: 'The agent tracks the cancel function of each active request.',
    lines: { 'Data Types': ['ab8d8013'], 'Request Cancellation': ['4a9a7a3b', '6027d874'] },
  },
  {
    id: 'agent-module/flow empty-prompt',
    says: 'An empty prompt is an error.',
    lines: { 'Agent Execution Flow': ['27a841a8'], 'Error Types': ['de40e10d'] },
    settled: 'An error with the code `empty-prompt`.',
  },
  {
    id: 'agent-module/flow busy',
    says: 'A prompt to a busy session is an error.',
    lines: { 'Agent Execution Flow': ['7b4c4a7d'], 'Error Types': ['9a88a0b6'] },
    settled: 'With `whenBusy: "reject"`, an error with the code `session-busy`.',
  },
  {
    id: 'agent-module/flow cancellable',
    says: 'Each request can be canceled.',
    lines: { 'Agent Execution Flow': ['db1f1ced'], 'Request Cancellation': ['c95492ca', '1be292c1'] },
  },
  {
    id: 'agent-module/flow adds-user-message',
    says: 'The session stores the user message.',
    lines: { 'Agent Execution Flow': ['96cd0e4e'] },
  },
  {
    id: 'agent-module/flow model-and-tools',
    says: 'Each request uses the configured model and tools.',
    lines: { 'Agent Execution Flow': ['9d24d8cb'] },
  },
  {
    id: 'agent-module/flow streams',
    says: 'The agent streams the model response.',
    lines: { 'Agent Execution Flow': ['bdc38ab3'], 'Request Cancellation': ['9a04af17'] },
  },
  {
    id: 'agent-module/flow text-delta',
    says: 'Each text delta reaches the caller.',
    lines: { 'Agent Execution Flow': ['0ecfcaae', '312595e8', 'ac46f8ab', '5f853cdf'] },
  },
  {
    id: 'agent-module/flow tool-call',
    says: 'Each tool call reaches the caller.',
    lines: { 'Agent Execution Flow': ['881c408a', '77a0a212', '89068cca', 'c3bbaa8e'] },
  },
  {
    id: 'agent-module/flow executes-tool',
    says: 'The loop executes the requested tool.',
    lines: { 'Agent Execution Flow': ['7f4eac0e', '250ab654'] },
  },
  {
    id: 'agent-module/flow adds-tool-result',
    says: 'The session stores each tool result.',
    lines: { 'Agent Execution Flow': ['e081fab1', 'ae1080a1'] },
  },
  {
    id: 'agent-module/flow tells-result',
    says: 'Each tool result reaches the caller.',
    lines: { 'Agent Execution Flow': ['005af5e0'] },
  },
  {
    id: 'agent-module/flow adds-answer',
    says: 'The session stores the assistant message.',
    lines: { 'Agent Execution Flow': ['2cebe743'] },
    settled: 'Each model response is one message, appended before its tool calls run.',
  },
  {
    id: 'agent-module/flow completes',
    says: 'The caller learns that the response is complete.',
    lines: { 'Agent Execution Flow': ['476584d6'] },
  },
  {
    id: 'agent-module/cancel in-flight',
    says: 'A caller can cancel while the response streams.',
    lines: { 'Request Cancellation': ['180f5409', 'dc5ea92f', '9d1e47e2'] },
  },
  {
    id: 'agent-module/cancel looks-up',
    says: '`cancel` finds the request of the session and aborts it.',
    lines: { 'Request Cancellation': ['b97142bf', '7746e3ba'] },
  },
  {
    id: 'agent-module/cancel stops-model',
    says: 'Canceling stops the model stream.',
    lines: { 'Request Cancellation': ['f4e11e24'] },
  },
  {
    id: 'agent-module/cancel returns',
    says: 'A canceled request returns to its caller.',
    lines: { 'Request Cancellation': ['3dfe1710'] },
    settled: 'Aborting is not a failure: `send` resolves with the outcome `aborted`.',
  },
  {
    id: 'agent-module/cancel clears',
    says: 'A canceled request is no longer active.',
    lines: { 'Request Cancellation': ['c3e2f1b7'] },
  },
  {
    id: 'agent-module/cancel cleanup',
    says: 'Canceling leaves a clean state.',
    lines: { 'Design Decisions': ['a42a8d59'] },
    settled: 'Received text stays, and every tool call has a result.',
  },
  {
    id: 'agent-module/options passed',
    says: 'Options control a single request.',
    lines: { SendOptions: ['9ab5ecb3', 'cdd296bd'] },
  },
  {
    id: 'agent-module/options session-id',
    says: 'An option selects the session.',
    lines: { 'Data Types': ['894158bc'], SendOptions: ['cc689e9e', '24aee7ec'] },
  },
  {
    id: 'agent-module/options current-session',
    says: 'Without a session id, the agent uses the current session.',
    lines: { SendOptions: ['8eb38001'] },
    settled: 'An agent has one session of its own; an `AgentSession` has a current one.',
  },
  {
    id: 'agent-module/options temperature',
    says: 'An option sets the temperature.',
    lines: { 'Data Types': ['98fc9cdf'], SendOptions: ['8959d43d', '231f979a'] },
  },
  {
    id: 'agent-module/options temperature-values',
    says: 'Low and high temperatures are both possible.',
    lines: { SendOptions: ['a2166a56', '258cd708'] },
    settled: 'Every value is passed on unchanged, including 0; its effect depends on the model.',
  },
  {
    id: 'agent-module/options temperature-default',
    says: 'Without a temperature, the model uses its default.',
    lines: { SendOptions: ['f7e7cc8f'] },
  },
  {
    id: 'agent-module/options max-tokens',
    says: 'An option limits the output tokens.',
    lines: { 'Data Types': ['83fc7f1d'], SendOptions: ['3cada0f7', '124264a5'] },
  },
  {
    id: 'agent-module/options max-tokens-required',
    says: 'Requests to Anthropic always contain the limit.',
    lines: { SendOptions: ['26ba81b0'] },
  },
  {
    id: 'agent-module/options max-tokens-default',
    says: 'The limit is 8192 if it is missing or zero.',
    lines: { SendOptions: ['85d156b8'] },
  },
  {
    id: 'agent-module/options example',
    says: 'A caller sends with a session id, a temperature and a limit.',
    lines: { SendOptions: ['c1898b48', '55e5f465', '5f845ca3', 'a18df9e7', '655572d5'] },
  },
] as const satisfies readonly Requirement[]
