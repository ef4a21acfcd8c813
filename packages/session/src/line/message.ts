/** The message payload and its content blocks. */

export const messageRoles = [
  'user',
  'assistant',
  'tool',
  'bashExecution',
  'custom',
  'branchSummary',
  'compactionSummary',
] as const

export type MessageRole = (typeof messageRoles)[number]

export interface Message {
  role: MessageRole
  content: Content[]
  model?: string
  provider?: string
  api?: string
  usage?: Usage
  stopReason?: string
  error?: MessageError
  thinkingLevel?: string
  runId?: string
  /** The queued message that this one delivers: one line both delivers and dequeues it. */
  submissionId?: string
  durationMs?: number
  /** Provider content that this build did not know and skipped: count by kind. */
  skipped?: Record<string, number>
  /** Only with role `bashExecution`. */
  bashExecution?: BashExecution
}

export type Content = TextContent | ImageContent | ToolUseContent | ToolResultContent | ReasoningContent

/** Accepted forms of message content: a string, our blocks, or text blocks as other SDKs have them. */
export type MessageInput = string | readonly (Content | { type: 'text'; text: string })[]

export interface TextContent {
  type: 'text'
  text: { content: string; providerMetadata?: Record<string, unknown> }
}

export interface ImageContent {
  type: 'image'
  image: { source: ImageSource }
}

export type ImageSource =
  | { type: 'base64'; mediaType: string; data: string }
  | { type: 'url'; mediaType: string; data: string }
  | { type: 'blob'; mediaType: string; sha256: string; size: number }

export interface ToolUseContent {
  type: 'tool_use'
  toolUse: ToolUse
}

export interface ToolUse {
  id: string
  name: string
  input: Record<string, unknown>
  /** The part of the input that arrived before the stream broke off; then `input` is empty. */
  partialInput?: string
  /** Opaque; sent back only to the model that produced the call. */
  providerMetadata?: Record<string, unknown>
}

export interface ToolResultContent {
  type: 'tool_result'
  toolResult: ToolResult
}

export interface ToolResult {
  toolUseId: string
  isError?: boolean
  content: string | Content[]
}

export interface ReasoningContent {
  type: 'reasoning'
  reasoning: { text: string; signature?: string; providerMetadata?: Record<string, unknown> }
}

export interface BashExecution {
  command: string
  output: string
  exitCode?: number
  cancelled?: boolean
  truncated?: boolean
  outputBlob?: BlobReference
  excludeFromContext?: boolean
}

export interface BlobReference {
  sha256: string
  size: number
}

/** Tokens of one model call. Counts that the provider did not report are absent. */
export interface Usage {
  inputTokens?: number
  outputTokens?: number
  cacheReadTokens?: number
  cacheWriteTokens?: number
  reasoningTokens?: number
  totalTokens?: number
  /** In US dollars. */
  cost?: number
}

export interface MessageError {
  kind: string
  message: string
}

export function text(content: string): TextContent {
  return { type: 'text', text: { content } }
}

/** The text of a message, without reasoning, images and tool calls. */
export function textOf({ content }: Pick<Message, 'content'>): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('')
}
