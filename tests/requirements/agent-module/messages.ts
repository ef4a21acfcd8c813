import type { Requirement } from '../requirement.ts'

/** Messages: what they are made of, who says them, and what the model gets to see of them. */
export const messages = [
  {
    id: 'agent-module/message id',
    quote: 'class Message {\n+ID string',
    settled: 'The id is that of its entry in the log.',
  },
  {
    id: 'agent-module/message role',
    quote: '+Role Role\nEvery message in CDD has a role that identifies who sent it.',
  },
  {
    id: 'agent-module/message content',
    quote: '+Content string',
    settled: 'session-manager.md: content is a list of blocks.',
  },
  {
    id: 'agent-module/message reasoning',
    quote: '+Reasoning string\nReasoning is stored in `Message.Reasoning` field',
    settled: 'A block of the content.',
  },
  {
    id: 'agent-module/message reasoning-metadata',
    quote:
      "+ReasoningMetadata ProviderMetadata\nProvider metadata (e.g., Claude's signature) stored in `Message.ReasoningMetadata`",
    settled: 'It is kept with the block that it belongs to.',
  },
  {
    id: 'agent-module/message tool-calls',
    quote: '+ToolCalls []ToolCall\nMessage --> ToolCall',
    settled: 'Blocks of the content.',
  },
  {
    id: 'agent-module/message tool-results',
    quote: '+ToolResults []ToolResult\nMessage --> ToolResult',
    settled: 'DESIGN 7: one entry each, when it finishes.',
  },
  {
    id: 'agent-module/message created-at',
    quote: 'class Message {\n+CreatedAt time.Time',
    settled: 'The timestamp of its entry.',
  },
  {
    id: 'agent-module/tool-call id',
    quote: 'class ToolCall {\n+ID string',
  },
  {
    id: 'agent-module/tool-call name',
    quote: 'class ToolCall {\n+Name string',
  },
  {
    id: 'agent-module/tool-call input',
    quote: '+Input string',
    settled: 'The JSON is parsed.',
  },
  {
    id: 'agent-module/tool-result call-id',
    quote: '+ToolCallID string\n`ToolCallID`: Links result back to the original tool call',
    settled: '`toolUseId`.',
  },
  {
    id: 'agent-module/tool-result name',
    quote: 'class ToolResult {\n+Name string',
    settled: 'The name stands in the call, which the result names.',
  },
  {
    id: 'agent-module/tool-result content',
    quote: 'class ToolResult {\n+Content string\n`Content`: The text output from the tool execution',
  },
  {
    id: 'agent-module/tool-result is-error',
    quote: '+IsError bool\n`IsError`: Boolean flag indicating if the tool failed',
  },
  {
    id: 'agent-module/roles four',
    quote: 'The agent module defines four different message roles using the `Role` type:',
    settled: 'session-manager.md: the roles are those of its messages.',
  },
  {
    id: 'agent-module/roles user',
    quote: '| `RoleUser` | `"user"` | User input messages - questions and commands from the human |',
  },
  {
    id: 'agent-module/roles assistant',
    quote: '| `RoleAssistant` | `"assistant"` | AI responses - text output and tool calls from Claude/GPT |',
  },
  {
    id: 'agent-module/roles system',
    quote: '| `RoleSystem` | `"system"` | System prompt - instructions that guide the AI\'s behavior |',
    settled: 'DESIGN 2: a `system` entry, appended only where it differs from the one in force.',
  },
  {
    id: 'agent-module/roles tool',
    quote: '| `RoleTool` | `"tool"` | Tool execution results - output from tool invocations |',
  },
  {
    id: 'agent-module/roles processing',
    quote: 'The role determines how the message is processed in the conversation flow.',
  },
  {
    id: 'agent-module/roles user-triggers',
    quote: 'User messages trigger AI responses',
  },
  {
    id: 'agent-module/roles assistant-calls',
    quote: 'assistant messages may contain tool calls',
  },
  {
    id: 'agent-module/roles tool-provides',
    quote: 'tool messages provide results back to the AI.',
  },
  {
    id: 'agent-module/reasoning captured',
    quote:
      'The agent captures reasoning content from models that support thinking blocks (Claude with extended thinking, MiniMax).',
  },
  {
    id: 'agent-module/reasoning start',
    quote: 'Model->>Agent: OnReasoningStart(id, content)\nNote over Agent: Start capturing reasoning',
  },
  {
    id: 'agent-module/reasoning delta',
    quote:
      'loop Reasoning Stream\nModel->>Agent: OnReasoningDelta(id, text)\nNote over Agent: Accumulate reasoning text',
  },
  {
    id: 'agent-module/reasoning end',
    quote: 'Model->>Agent: OnReasoningEnd(id, content)\nNote over Agent: Store final reasoning + metadata',
  },
  {
    id: 'agent-module/reasoning added',
    quote: 'Agent->>Session: AddMessage(msg with Reasoning)',
  },
  {
    id: 'agent-module/reasoning not-sent',
    quote:
      'Reasoning is **not** sent back to the model in history (signatures become invalid across sessions)\n**Reasoning exclusion from history**: Thinking blocks contain provider-specific signatures that become invalid across sessions, so only text/tool content is sent back to the model',
    settled: 'DESIGN 2: sent back only to the model that thought it (`auto`), or never (`never`).',
  },
  {
    id: 'agent-module/reasoning only-text-and-calls',
    quote: 'Only the text content and tool calls are included in conversation history',
    settled: 'DESIGN 2: so it is with `never`.',
  },
  {
    id: 'agent-module/history converts',
    quote: 'The agent converts session messages to Fantasy format for context:',
  },
  {
    id: 'agent-module/history user',
    quote: 'UM[User Message]\nFU[fantasy.UserMessage]\nUM --> FU',
  },
  {
    id: 'agent-module/history assistant',
    quote: 'AM[Assistant Message]\nFA[fantasy.AssistantMessage<br/>TextPart + ToolCallPart]\nAM --> FA',
  },
  {
    id: 'agent-module/history tool',
    quote: 'TM[Tool Message]\nFT[fantasy.ToolMessage<br/>ToolResultPart]\nTM --> FT',
  },
  {
    id: 'agent-module/history last-excluded',
    quote:
      "**Important:** The last message (current user input) is excluded from history since it's passed separately as the prompt.",
    settled: 'The request is one list: the current input is its last message, and is in it once.',
  },
] as const satisfies Requirement[]
