import type { Content, ToolUse, Usage } from '@tapetree/session'
import { isDeeperThan } from '@tapetree/session/util/json'
import type { LiveText } from '@tapetree/session/view'
import type { FinishReason, ModelPart, ProviderMetadata } from '../models/model.ts'

type Block = TextBlock | CallBlock

interface TextBlock {
  type: 'text' | 'reasoning'
  text: string
  signature?: string
  providerMetadata?: ProviderMetadata
}

interface CallBlock {
  type: 'call'
  callId: string
  name: string
  text: string
  isWhole: boolean
  providerMetadata?: ProviderMetadata
}

/** A line of the log is nested at most 64 levels deep, and some of these are its own. */
const maxInputDepth = 48

/** An answer while it is streamed. `item` is the id that its entry will have. */
export class Answer {
  readonly item: string
  readonly #runId: string
  readonly #blocks: Block[] = []
  /** Text or reasoning has arrived. */
  #hasBegun = false
  usage: Usage | undefined
  /** How often content of each kind that the model adapter does not know arrived. */
  skipped: Record<string, number> | undefined
  finish: FinishReason | undefined

  constructor(item: string, runId: string) {
    this.item = item
    this.#runId = runId
  }

  /** Adds a part and returns the text that is new to a reader. */
  take(part: ModelPart): LiveText | undefined {
    switch (part.type) {
      case 'text_delta':
        return this.#addText(part.part, 'text', part.text)
      case 'reasoning_delta':
        return this.#addText(part.part, 'reasoning', part.text)
      case 'text_end':
      case 'reasoning_end':
        this.#end(part)
        return undefined
      case 'tool_input_start':
        this.#blocks[part.part] = { type: 'call', callId: part.callId, name: part.name, text: '', isWhole: false }
        return undefined
      case 'tool_input_delta':
        return this.#addInput(part.part, part.text)
      case 'tool_call':
        return this.#takeCall(part)
      case 'skipped':
        this.skipped = part.kinds
        return undefined
      case 'usage':
        this.usage = part.usage
        return undefined
      case 'finish':
        this.finish = part.reason
        return undefined
      default:
        part satisfies never
        return undefined
    }
  }

  /** The content so far, in order. A call whose input is incomplete has the received input in `partialInput`. */
  get content(): Content[] {
    const isCutOff = this.finish === 'length'
    return this.#blocks.flatMap((block, index) => contentOf(block, isCutOff && index === this.#blocks.length - 1))
  }

  get calls(): ToolUse[] {
    return this.content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse] : []))
  }

  #addText(part: number, type: 'text' | 'reasoning', text: string): LiveText | undefined {
    const block = this.#textBlock(part, type)
    if (text === '') return undefined
    const isBeginning = type === 'text' && part === 0 && !this.#hasBegun
    this.#hasBegun = true
    // Some models begin with a line break. Only the first one is dropped, however the text is split into deltas.
    const added = isBeginning && text.startsWith('\n') ? text.slice(1) : text
    if (added === '') return undefined
    const off = block.text.length
    block.text += added
    return { type: 'delta', item: this.item, part, kind: type, off, text: added, run: this.#runId }
  }

  #addInput(part: number, text: string): LiveText | undefined {
    const block = this.#blocks[part]
    if (block?.type !== 'call' || text === '') return undefined
    const off = block.text.length
    block.text += text
    return { type: 'delta', item: this.item, part, kind: 'tool_input', off, text, run: this.#runId }
  }

  #takeCall(call: ModelPart & { type: 'tool_call' }): LiveText | undefined {
    const before = this.#blocks[call.part]
    const streamed = before?.type === 'call' ? before.text : ''
    this.#blocks[call.part] = {
      type: 'call',
      callId: call.callId,
      name: call.name,
      text: call.input,
      isWhole: true,
      ...(call.providerMetadata && { providerMetadata: call.providerMetadata }),
    }
    if (streamed !== '') return undefined
    const { part, input } = call
    return { type: 'delta', item: this.item, part, kind: 'tool_input', off: 0, text: input, run: this.#runId }
  }

  #end(part: ModelPart & { type: 'text_end' | 'reasoning_end' }): void {
    // Reasoning may be a signature without text.
    const block = this.#textBlock(part.part, part.type === 'text_end' ? 'text' : 'reasoning')
    if (part.providerMetadata) block.providerMetadata = part.providerMetadata
    if (part.type === 'reasoning_end' && part.signature !== undefined) block.signature = part.signature
  }

  #textBlock(part: number, type: TextBlock['type']): TextBlock {
    const known = this.#blocks[part]
    if (known?.type === type) return known
    const block: TextBlock = { type, text: '' }
    this.#blocks[part] = block
    return block
  }
}

/** `isCutOff`: the answer reached its limit in or after this block. */
function contentOf(block: Block, isCutOff: boolean): Content[] {
  const metadata = block.providerMetadata && { providerMetadata: block.providerMetadata }
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [{ type: 'text', text: { content: block.text, ...metadata } }]
    case 'reasoning': {
      const { text, signature } = block
      if (text === '' && signature === undefined && !metadata) return []
      return [{ type: 'reasoning', reasoning: { text, ...(signature !== undefined && { signature }), ...metadata } }]
    }
    case 'call': {
      // Without input, the limit may have come before the first argument.
      const isWhole = block.isWhole && !(isCutOff && /^[\s{}]*$/.test(block.text))
      const input = isWhole ? parseInput(block.text) : undefined
      const call = { id: block.callId, name: block.name, input: input ?? {} }
      return [{ type: 'tool_use', toolUse: { ...call, ...(!input && { partialInput: block.text }), ...metadata } }]
    }
    default:
      block satisfies never
      return []
  }
}

/** The input of a call if it is a JSON object that fits into a line of the log. An empty input means no arguments. */
function parseInput(text: string): Record<string, unknown> | undefined {
  if (text.trim() === '') return {}
  try {
    const parsed: unknown = JSON.parse(text)
    const isInput = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
    return isInput && !isDeeperThan(maxInputDepth, parsed) ? (parsed as Record<string, unknown>) : undefined
  } catch {
    return undefined // incomplete or not JSON: the caller tells the model
  }
}
