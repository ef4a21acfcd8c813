import type { ContentBlock } from '@agentclientprotocol/sdk/unstable'
import type { Message } from '@tapetree/session'

export interface PromptOptions {
  /** The agent accepts images. */
  hasImages: boolean
  /** The agent knows nothing of the conversation before the last messages. */
  isNew: boolean
}

/** So much of an older conversation is told to an agent that does not know it. */
const maxHistoryLength = 60_000

const interrupted =
  'Your process ended in the middle of this turn, and the conversation continues here. ' +
  'Calls that were running may have taken effect: check before you repeat one. Continue.'

/** What an agent is sent: the messages since its last answer, or the request to continue one that was cut off. */
export function promptBlocks(messages: readonly Message[], { hasImages, isNew }: PromptOptions): ContentBlock[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant' || role === 'tool')
  const fresh = messages.slice(last + 1)
  const earlier = messages.slice(0, last + 1)
  const history = isNew && earlier.length > 0 ? [text(historyOf(earlier))] : []
  const blocks = fresh.flatMap((message) => blocksOf(message, hasImages))
  return [...history, ...(blocks.length > 0 ? blocks : [text(interrupted)])]
}

function text(content: string): ContentBlock {
  return { type: 'text', text: content }
}

export function blocksOf({ content }: Message, hasImages: boolean): ContentBlock[] {
  return content.flatMap((block): ContentBlock[] => {
    if (block.type === 'text') return block.text.content === '' ? [] : [text(block.text.content)]
    if (block.type !== 'image') return []
    const { source } = block.image
    if (!hasImages || source.type !== 'base64') return [text('[An image that you cannot see.]')]
    return [{ type: 'image', data: source.data, mimeType: source.mediaType }]
  })
}

function historyOf(messages: readonly Message[]): string {
  const told = messages.map(tell).filter((each) => each !== '')
  const kept: string[] = []
  let length = 0
  for (const each of told.toReversed()) {
    length += each.length
    if (length > maxHistoryLength) break
    kept.unshift(each)
  }
  const left = told.length - kept.length
  const gap = left > 0 ? [`(${left} earlier messages are left out.)`] : []
  return ['This conversation began before this session. So far:', ...gap, ...kept, 'It continues:'].join('\n\n')
}

const maxToldLength = 4000

function tell({ role, content }: Message): string {
  const parts = content.flatMap((block): string[] => {
    switch (block.type) {
      case 'text':
        return [block.text.content]
      case 'tool_use':
        return [`[call ${block.toolUse.name} ${JSON.stringify(block.toolUse.input)}]`]
      case 'tool_result': {
        const { content: result } = block.toolResult
        return [typeof result === 'string' ? result : '[blocks]']
      }
      case 'image':
        return ['[image]']
      case 'reasoning':
        return []
      default:
        block satisfies never
        return []
    }
  })
  const said = parts.join('\n')
  const cut = said.length > maxToldLength ? `${said.slice(0, maxToldLength)} […]` : said
  return cut === '' ? '' : `${role}: ${cut}`
}
