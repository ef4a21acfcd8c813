import type { Requirement } from '../requirement.ts'

/** Streaming: callbacks, tool execution and events. */
export const streaming = [
  {
    id: 'agent-module/callbacks real-time',
    says: 'Callbacks report the response while it streams.',
    lines: { 'Streaming and Callbacks': ['85c03aaf'], 'Design Decisions': ['7b63116a'] },
  },
  {
    id: 'agent-module/callbacks on-text-delta',
    says: '`onTextDelta` receives each piece of text.',
    lines: { 'Data Types': ['ea60bbc9'], 'Streaming and Callbacks': ['c9c36f4a'] },
    settled: 'A callback returns nothing; an observer cannot stop the run.',
  },
  {
    id: 'agent-module/callbacks on-tool-call',
    says: '`onToolCall` receives each tool call.',
    lines: { 'Data Types': ['b9798564'], 'Streaming and Callbacks': ['cacdddb4'] },
    settled: 'It is called when the response with the call is in the log.',
  },
  {
    id: 'agent-module/callbacks on-tool-result',
    says: '`onToolResult` receives each result, failed or not.',
    lines: { 'Data Types': ['e6e8b033'], 'Streaming and Callbacks': ['be285da1'], 'Tool Execution': ['03af563f'] },
  },
  {
    id: 'agent-module/callbacks on-complete',
    says: '`onComplete` is called at the end of the response.',
    lines: { 'Data Types': ['12987d9f'], 'Streaming and Callbacks': ['a81ba4cb'] },
  },
  {
    id: 'agent-module/callbacks on-error',
    says: '`onError` receives errors of the stream.',
    lines: { 'Data Types': ['3952f536'], 'Streaming and Callbacks': ['f60e8f91'] },
  },
  {
    id: 'agent-module/screen text',
    says: 'The screen renders text as it arrives.',
    lines: { 'Streaming and Callbacks': ['ce9ba7e1', '9719156f'] },
  },
  {
    id: 'agent-module/screen tool-call',
    says: 'The screen shows a running tool.',
    lines: { 'Streaming and Callbacks': ['5fb0cc71', 'b4a5c1fc'] },
  },
  {
    id: 'agent-module/screen tool-result',
    says: 'The screen shows the result of a tool.',
    lines: { 'Streaming and Callbacks': ['da06f567', '66830930'] },
  },
  {
    id: 'agent-module/screen complete',
    says: 'The screen marks a response as complete.',
    lines: { 'Streaming and Callbacks': ['85fad848', 'd84a45c6'] },
  },
  {
    id: 'agent-module/screen error',
    says: 'The screen shows errors.',
    lines: { 'Streaming and Callbacks': ['919bcd3d', 'f9d33275'] },
  },
  {
    id: 'agent-module/tools in-the-loop',
    says: 'The agent loop executes tools.',
    lines: { 'Tool Execution': ['5bfe8ce5'] },
    settled: 'The loop is our own.',
  },
  {
    id: 'agent-module/tools result-created',
    says: 'Each finished tool produces a result.',
    lines: { 'Tool Execution': ['e5e8b72d'] },
  },
  {
    id: 'agent-module/tools called-back-first',
    says: 'The tool call callback comes before the execution.',
    lines: { 'Tool Execution': ['76a6becf', '9b341b7c'] },
  },
  {
    id: 'agent-module/tools executed',
    says: 'The tool runs and returns a result.',
    lines: { 'Tool Execution': ['13d3f4b3', '0be33541'] },
  },
  {
    id: 'agent-module/tools success',
    says: 'A successful tool returns text.',
    lines: { 'Tool Execution': ['14dd09f6', '373c0c20'] },
  },
  {
    id: 'agent-module/tools error',
    says: 'A failed tool returns an error message.',
    lines: { 'Tool Execution': ['ac2477c5', 'b3d954ca'] },
  },
  {
    id: 'agent-module/tools both-are-told',
    says: 'Successes and failures both reach the result callback.',
    lines: { 'Tool Execution': ['70f88ee6', '7f96022a'] },
  },
  {
    id: 'agent-module/tools message-added',
    says: 'Each tool result becomes a message of the session.',
    lines: { 'Tool Execution': ['c72a769f'] },
  },
  {
    id: 'agent-module/tools goes-on',
    says: 'The loop continues after the tool result.',
    lines: { 'Tool Execution': ['6ae77adc'] },
  },
  {
    id: 'agent-module/tools media',
    says: 'A tool can return binary content.',
    lines: { 'Tool Execution': ['da7bf69b'] },
    settled: 'Images are stored and sent with the result.',
  },
  {
    id: 'agent-module/tools context',
    says: 'A tool receives the working directory and the session id.',
    lines: { 'Design Decisions': ['fdcfd8f2'] },
    settled: '`ToolContext` has `cwd`, `sessionId`, `runId` and `callId`.',
  },
  {
    id: 'agent-module/events hub',
    says: 'Any number of subscribers receive events.',
    lines: { 'PubSub Event Integration': ['651b48b6', '52e9e9cb'], 'Design Decisions': ['507e2c88'] },
    settled: '`subscribe`.',
  },
  {
    id: 'agent-module/events two-brokers',
    says: 'There are agent events and tool events.',
    lines: { 'PubSub Event Integration': ['ffda183a'] },
    settled: '`agentEvents` and `toolEvents` are two views of one stream.',
  },
  {
    id: 'agent-module/events text-delta',
    says: 'Each text delta is an agent event.',
    lines: { 'PubSub Event Integration': ['df88c442', 'fa0fd3c0'] },
  },
  {
    id: 'agent-module/events tool-call',
    says: 'Each tool call is an agent event.',
    lines: { 'PubSub Event Integration': ['d3497eb3', 'a81cf821'] },
  },
  {
    id: 'agent-module/events tool-result',
    says: 'Each tool result is an agent event.',
    lines: { 'PubSub Event Integration': ['c65b0483', '78b9edcc'] },
  },
  {
    id: 'agent-module/events complete',
    says: 'The end of a response is an agent event.',
    lines: { 'PubSub Event Integration': ['6dabeef8', '33186086'] },
  },
  {
    id: 'agent-module/events error',
    says: 'A stream error is an agent event.',
    lines: { 'PubSub Event Integration': ['9570937a', 'a94b2d23'] },
  },
  {
    id: 'agent-module/events tool-started',
    says: 'The start of a tool is a tool event.',
    lines: { 'PubSub Event Integration': ['2c84014c', '3bc6bfef'] },
  },
  {
    id: 'agent-module/events tool-completed',
    says: 'The success of a tool is a tool event.',
    lines: { 'PubSub Event Integration': ['e5134c49', '4d8b4f60'] },
  },
  {
    id: 'agent-module/events tool-failed',
    says: 'The failure of a tool is a tool event.',
    lines: { 'PubSub Event Integration': ['0341108d', 'fbb464fb'] },
  },
  {
    id: 'agent-module/events correlation',
    says: 'Events carry the ids of their session and message.',
    lines: { 'PubSub Event Integration': ['86f31aac'] },
  },
  {
    id: 'agent-module/events panel',
    says: 'The screen shows the activity of the agent.',
    lines: { 'PubSub Event Integration': ['9114f676', '0f01ed4b', 'ee543b66', 'd0e8ce04', '1b623438', '5c38409b'] },
    settled: 'A call appears in the conversation with its state; a status line shows the activity and its duration.',
  },
] as const satisfies readonly Requirement[]
