import type { Attributes } from '@opentelemetry/api'
import type { Content, Message, ToolResult, Usage } from '@tapetree/session'

/** Names of the GenAI conventions. Copied: the package that defines them may rename them in a minor version. */
export const gen = {
  operationName: 'gen_ai.operation.name',
  providerName: 'gen_ai.provider.name',
  conversationId: 'gen_ai.conversation.id',
  agentName: 'gen_ai.agent.name',
  requestModel: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheCreationTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  callId: 'gen_ai.tool.call.id',
  callArguments: 'gen_ai.tool.call.arguments',
  callResult: 'gen_ai.tool.call.result',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
} as const

export function usageAttributes(usage: Usage = {}): Attributes {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    ...(inputTokens !== undefined && { [gen.inputTokens]: inputTokens }),
    ...(outputTokens !== undefined && { [gen.outputTokens]: outputTokens }),
    ...(cacheReadTokens !== undefined && { [gen.cacheReadTokens]: cacheReadTokens }),
    ...(cacheWriteTokens !== undefined && { [gen.cacheCreationTokens]: cacheWriteTokens }),
    ...(reasoningTokens !== undefined && { [gen.reasoningTokens]: reasoningTokens }),
  }
}

export function callAttributes({ name, callId }: { name: string; callId: string }): Attributes {
  return { [gen.toolName]: name, [gen.toolType]: 'function', [gen.callId]: callId }
}

export function argumentAttributes(input: unknown): Attributes {
  return { [gen.callArguments]: JSON.stringify(input ?? {}) }
}

export function inputAttributes(message: Message): Attributes {
  return { [gen.inputMessages]: JSON.stringify([{ role: message.role, parts: partsOf(message.content) }]) }
}

export function outputAttributes({ role, content, stopReason }: Message): Attributes {
  return { [gen.outputMessages]: JSON.stringify([{ role, parts: partsOf(content), finish_reason: stopReason }]) }
}

export function resultAttributes({ content }: ToolResult): Attributes {
  return { [gen.callResult]: typeof content === 'string' ? content : JSON.stringify(partsOf(content)) }
}

/** Images are left out of traces. */
function partsOf(content: readonly Content[]): unknown[] {
  return content.flatMap((block): unknown[] => {
    switch (block.type) {
      case 'text':
        return [{ type: 'text', content: block.text.content }]
      case 'reasoning':
        return [{ type: 'reasoning', content: block.reasoning.text }]
      case 'tool_use': {
        const { id, name, input } = block.toolUse
        return [{ type: 'tool_call', id, name, arguments: input }]
      }
      case 'tool_result':
        return [{ type: 'tool_call_response', id: block.toolResult.toolUseId, response: block.toolResult.content }]
      case 'image':
        return []
      default:
        block satisfies never
        return []
    }
  })
}
