import { isObject } from '@tapetree/session/util/json'
import { text, type Content, type ToolUse } from '@tapetree/session'
import type { ToolOutput } from '../tools/tool.ts'
import type { OpenRun } from './open-run.ts'

/** Messages to the model about calls that did not finish. */
export const resultText = {
  aborted: 'Not run: the user stopped the run.',
  skipped: 'Not run: the user sent a new message first.',
  interrupted: 'Stopped because the user sent a new message. It may have taken effect in part.',
  stopped: 'Stopped by the user. It may have taken effect in part.',
  limited: (limit: string) => `Not run: ${limit}`,
  unknown: (name: string, known: Iterable<string>) =>
    `There is no tool ${name}. Available tools: ${[...known].join(', ')}.`,
  failed: (error: unknown) => `The tool failed: ${error instanceof Error ? error.message : String(error)}`,
  overdue: (ms: number) =>
    `The tool did not return within ${Math.round(ms / 1000)} s, so the agent stopped waiting. It may still take effect.`,
  unknownOutcome:
    'Outcome unknown: the agent ended while this was running. It may have taken effect; it was not run again.',
  otherBranch:
    'The conversation went back to before the result of this call. It may have taken effect; it was not run again.',
  nothing: '(no output)',
  unreadable: (type: string) => `The tool returned a value of type ${type} that cannot be shown.`,
  leftOut: (count: number) => `(${count} more images were left out.)`,
  paused: 'Continue.',
  cutOff: (name: string, isLength: boolean) =>
    `Your call of ${name} was not run: its input is incomplete` +
    `${isLength ? ', because the answer reached its maximum length' : ''}. Send it again${isLength ? ', in smaller parts' : ''}.`,
}

/** Appends the result of a call; durable when it resolves. */
export async function answerCall(call: ToolUse, output: ToolOutput, open: OpenRun): Promise<void> {
  const { content, isError } = output
  const toolResult = { toolUseId: call.id, content, ...(isError && { isError }) }
  await open.append({
    type: 'message',
    message: { role: 'tool', content: [{ type: 'tool_result', toolResult }], runId: open.runId },
  })
}

/** The maximum number of blocks that fit into one line of the log. */
const maxBlocks = 64

/**
 * The result that the model gets. A tool may return anything: a string, nothing, blocks in our form or in that of other
 * SDKs, or an arbitrary value, which is sent as JSON.
 */
export function outputOf(returned: unknown): ToolOutput {
  try {
    const own = isObject(returned) && 'content' in returned ? contentOf(returned['content']) : undefined
    if (own === undefined)
      return { content: contentOf(returned) ?? JSON.stringify(returned) ?? resultText.unreadable(typeof returned) }
    return { content: own, ...(isObject(returned) && returned['isError'] === true && { isError: true }) }
  } catch {
    // It is cyclic, has a bigint, or has a member that throws when it is read.
    return { content: resultText.unreadable(typeof returned) }
  }
}

/** Undefined for a value that is neither text nor blocks. */
function contentOf(value: unknown): string | Content[] | undefined {
  if (value === undefined || value === null) return resultText.nothing
  if (typeof value === 'string') return value
  const blocks = Array.isArray(value) ? value.map(blockOf) : [undefined]
  return blocks.every((block) => block !== undefined) ? fitting(blocks) : undefined
}

/** Text or an image; undefined for anything else. Rebuilt from known members, so that nothing else reaches the log. */
function blockOf(block: unknown): Content | undefined {
  if (!isObject(block)) return undefined
  const { type, text: said, image } = block
  if (type === 'text') {
    const content = isObject(said) ? said['content'] : said
    return typeof content === 'string' ? text(content) : undefined
  }
  const source = type === 'image' && isObject(image) ? image['source'] : undefined
  if (!isObject(source)) return undefined
  const { type: kind, mediaType, data, sha256, size } = source
  if (typeof mediaType !== 'string') return undefined
  if (kind === 'blob' && typeof sha256 === 'string' && typeof size === 'number') {
    return { type: 'image', image: { source: { type: kind, mediaType, sha256, size } } }
  }
  if ((kind !== 'base64' && kind !== 'url') || typeof data !== 'string') return undefined
  return { type: 'image', image: { source: { type: kind, mediaType, data } } }
}

function fitting(blocks: Content[]): Content[] {
  if (blocks.length <= maxBlocks) return blocks
  const said = blocks.flatMap((block) => (block.type === 'text' ? [block.text.content] : []))
  const images = blocks.filter(({ type }) => type === 'image')
  const shown = images.slice(0, maxBlocks - 2)
  const leftOut = images.length - shown.length
  return [text(said.join('\n')), ...shown, ...(leftOut > 0 ? [text(resultText.leftOut(leftOut))] : [])]
}
