import type { Requirement } from '../requirement.ts'

/** What is told while it happens: callbacks, tools at work, and the two views of events. */
export const streaming = [
  {
    id: 'agent-module/callbacks real-time',
    quote:
      'The agent uses callbacks for real-time streaming:\n**Callback-based streaming**: Allows TUI to render responses incrementally without buffering',
  },
  {
    id: 'agent-module/callbacks on-text-delta',
    quote: '+OnTextDelta func(string) error\n**OnTextDelta**: Called for each text chunk from the model',
    settled: 'A callback returns nothing: whoever watches cannot stop what is watched.',
  },
  {
    id: 'agent-module/callbacks on-tool-call',
    quote: '+OnToolCall func(ToolCall) error\n**OnToolCall**: Called when the model requests a tool execution',
    settled: 'It is called when the answer that makes the call is in the log.',
  },
  {
    id: 'agent-module/callbacks on-tool-result',
    quote:
      '+OnToolResult func(ToolResult) error\n**OnToolResult**: Called after a tool completes (success or error)\nThe `OnToolResult` callback is invoked to notify the agent of the result.',
  },
  {
    id: 'agent-module/callbacks on-complete',
    quote: '+OnComplete func() error\n**OnComplete**: Called when the full response is complete',
  },
  {
    id: 'agent-module/callbacks on-error',
    quote: '+OnError func(error)\n**OnError**: Called if an error occurs during streaming',
  },
  {
    id: 'agent-module/screen text',
    quote: 'RenderText[Render text incrementally]\nOnTextDelta --> RenderText',
  },
  {
    id: 'agent-module/screen tool-call',
    quote: 'ShowTool[Show tool execution]\nOnToolCall --> ShowTool',
  },
  {
    id: 'agent-module/screen tool-result',
    quote: 'ShowResult[Display result]\nOnToolResult --> ShowResult',
  },
  {
    id: 'agent-module/screen complete',
    quote: 'Finish[Mark complete]\nOnComplete --> Finish',
  },
  {
    id: 'agent-module/screen error',
    quote: 'HandleErr[Show error]\nOnError --> HandleErr',
  },
  {
    id: 'agent-module/tools in-the-loop',
    quote: 'Tools are executed by Fantasy during the agent loop.',
    settled: 'DESIGN 3: by our own loop.',
  },
  {
    id: 'agent-module/tools result-created',
    quote: 'When a tool completes, a `ToolResult` is created with these fields:',
  },
  {
    id: 'agent-module/tools called-back-first',
    quote: 'A[Model generates tool call] --> B[Fantasy receives ToolCallContent]\nB --> C[Agent.OnToolCall callback]',
  },
  {
    id: 'agent-module/tools executed',
    quote: 'C --> D[Fantasy executes tool]\nD --> E{Tool result}',
  },
  {
    id: 'agent-module/tools success',
    quote: 'E -->|Success| F[ToolResultOutputContentText]\n| `Text` | Successful result with text content |',
  },
  {
    id: 'agent-module/tools error',
    quote: 'E -->|Error| G[ToolResultOutputContentError]\n| `Error` | Failed execution with error message |',
  },
  {
    id: 'agent-module/tools both-are-told',
    quote: 'F --> H[Agent.OnToolResult callback]\nG --> H',
  },
  {
    id: 'agent-module/tools message-added',
    quote: 'H --> I[Add tool message to session]',
  },
  {
    id: 'agent-module/tools goes-on',
    quote: 'I --> J[Continue streaming]',
  },
  {
    id: 'agent-module/tools media',
    quote: '| `Media` | Binary content (treated as unsupported) |',
    settled: 'Images are content like text: they are kept, and sent with the result.',
  },
  {
    id: 'agent-module/tools context',
    quote: '**Tool context injection**: Working directory and session ID passed via context values',
    settled: '`cwd`, `sessionId`, `runId` and `callId` of the `ToolContext`.',
  },
  {
    id: 'agent-module/events hub',
    quote:
      'The agent publishes events to a PubSub hub for real-time UI updates and logging.\nLogger[Debug Logger]\n**PubSub decoupling**: Events published to hub allow loose coupling between agent and UI components',
    settled: 'DESIGN 6: `subscribe`, any number of times.',
  },
  {
    id: 'agent-module/events two-brokers',
    quote: 'Events are published to two brokers: `Agent` and `Tool`.',
    settled: '`agentEvents` and `toolEvents`, two views of one stream.',
  },
  {
    id: 'agent-module/events text-delta',
    quote: 'TextDelta[TextDeltaEvent]\n| `TextDeltaEvent` | Agent | Each text chunk from model |',
  },
  {
    id: 'agent-module/events tool-call',
    quote: 'ToolCall[ToolCallEvent]\n| `ToolCallEvent` | Agent | Model requests tool execution |',
  },
  {
    id: 'agent-module/events tool-result',
    quote: 'ToolResult[ToolResultEvent]\n| `ToolResultEvent` | Agent | Tool returns result |',
  },
  {
    id: 'agent-module/events complete',
    quote: 'Complete[CompleteEvent]\n| `CompleteEvent` | Agent | Response fully complete |',
  },
  {
    id: 'agent-module/events error',
    quote: 'Error[ErrorEvent]\n| `ErrorEvent` | Agent | Error during streaming |',
  },
  {
    id: 'agent-module/events tool-started',
    quote: 'Started[ToolStartedEvent]\n| `ToolStartedEvent` | Tool | Tool execution begins |',
  },
  {
    id: 'agent-module/events tool-completed',
    quote: 'Completed[ToolCompletedEvent]\n| `ToolCompletedEvent` | Tool | Tool succeeds |',
  },
  {
    id: 'agent-module/events tool-failed',
    quote: 'Failed[ToolFailedEvent]\n| `ToolFailedEvent` | Tool | Tool fails |',
  },
  {
    id: 'agent-module/events correlation',
    quote: 'Events include `sessionID` and `messageID` for correlation.',
  },
  {
    id: 'agent-module/events panel',
    quote:
      'TUI[TUI Activity Panel]\nTextDelta --> TUI\nToolCall --> TUI\nComplete --> TUI\nStarted --> TUI\nCompleted --> TUI',
    settled:
      'A call stands in the conversation, with its state; the line above the composer tells what goes on, and for how long.',
  },
] as const satisfies Requirement[]
