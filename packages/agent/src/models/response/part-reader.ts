import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { ResponseNotes } from '../events/event-reader.ts'
import type { ModelPart, ProviderMetadata } from '../model.ts'
import type { ProviderFacts } from '../provider-facts.ts'
import { takeSignature } from '../returned-reasoning.ts'

/** A content block that is being streamed. */
interface OpenBlock {
  part: number
  metadata: ProviderMetadata
  /** Of a call. */
  callId?: string
}

/** Converts the parts of a provider package to ours. Drops everything else: files, sources, unknown kinds. */
export class PartReader {
  readonly #facts: ProviderFacts
  readonly #open = new Map<string, OpenBlock>()
  readonly #callIds = new Set<string>()
  #blocks = 0
  /** The last block of reasoning. */
  #reasoning: number | undefined
  #calls = 0

  constructor(facts: ProviderFacts) {
    this.#facts = facts
  }

  get hasCalls(): boolean {
    return this.#calls > 0
  }

  /** The content that came beside the parts of the provider package. */
  *readNotes({ reasoningDetails, skipped }: ResponseNotes): Generator<ModelPart> {
    if (this.#facts.reasoning === 'reasoning_details' && reasoningDetails.length > 0) {
      const part = this.#reasoning ?? this.#blocks++
      yield { type: 'reasoning_end', part, providerMetadata: { [this.#facts.namespace]: { reasoningDetails } } }
    }
    if (skipped.size > 0) yield { type: 'skipped', kinds: Object.fromEntries(skipped) }
  }

  read(part: LanguageModelV4StreamPart): ModelPart | undefined {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#block(part)
        return undefined
      case 'text-delta':
      case 'reasoning-delta':
        return this.#readDelta(part)
      case 'text-end': {
        const { part: place, metadata } = this.#end(part)
        return { type: 'text_end', part: place, ...(hasMembers(metadata) && { providerMetadata: metadata }) }
      }
      case 'reasoning-end': {
        const { part: place, metadata } = this.#end(part)
        this.#reasoning = place
        return { type: 'reasoning_end', part: place, ...takeSignature(metadata, this.#facts) }
      }
      case 'tool-input-start': {
        // The provider runs this tool itself.
        if (part.providerExecuted) return undefined
        const block = this.#block(part)
        return {
          type: 'tool_input_start',
          part: block.part,
          callId: this.#callId(block, part.id),
          name: plainName(part.toolName),
        }
      }
      case 'tool-input-delta': {
        const block = this.#open.get(keyOf(part))
        if (!block || part.delta === '') return undefined
        return { type: 'tool_input_delta', part: block.part, text: part.delta }
      }
      case 'tool-call':
        return part.providerExecuted ? undefined : this.#readCall(part)
      default:
        return undefined
    }
  }

  #readDelta(part: LanguageModelV4StreamPart & { type: 'text-delta' | 'reasoning-delta' }): ModelPart | undefined {
    const block = this.#block(part)
    // A signature comes as a delta without text.
    if (part.delta === '') return undefined
    const type = part.type === 'text-delta' ? 'text_delta' : 'reasoning_delta'
    return { type, part: block.part, text: part.delta }
  }

  #readCall(call: LanguageModelV4StreamPart & { type: 'tool-call' }): ModelPart {
    this.#calls += 1
    const { toolCallId, input, providerMetadata } = call
    const block = this.#end({ type: 'tool-call', id: toolCallId, providerMetadata })
    const [callId, name] = [this.#callId(block, toolCallId), plainName(call.toolName)]
    const metadata = hasMembers(block.metadata) && { providerMetadata: block.metadata }
    return { type: 'tool_call', part: block.part, callId, name, input, ...metadata }
  }

  /** Results are matched by id, so the second call with the same id gets another one. */
  #callId(block: OpenBlock, given: string): string {
    if (block.callId !== undefined) return block.callId
    let id = given
    for (let use = 2; this.#callIds.has(id); use += 1) id = `${given}_${use}`
    this.#callIds.add(id)
    block.callId = id
    return id
  }

  /** An id may be reused after its block has ended. */
  #end(part: BlockPart): OpenBlock {
    const block = this.#block(part)
    this.#open.delete(keyOf(part))
    return block
  }

  /** The block of a part, with its metadata merged. */
  #block(part: BlockPart): OpenBlock {
    const key = keyOf(part)
    let block = this.#open.get(key)
    if (!block) {
      block = { part: this.#blocks, metadata: {} }
      this.#blocks += 1
      this.#open.set(key, block)
    }
    if (part.providerMetadata) block.metadata = merge(block.metadata, part.providerMetadata)
    return block
  }
}

/** Open models sometimes write a control token after the name: `read<|channel|>commentary`. */
function plainName(name: string): string {
  return name.replace(/<\|[^]*$/, '').trim() || name
}

interface BlockPart {
  type: string
  id: string
  providerMetadata?: SharedV4ProviderMetadata | undefined
}

/** Text, reasoning and calls have separate ids, which may be equal. */
function keyOf({ type, id }: BlockPart): string {
  return `${type.slice(0, type.indexOf('-'))} ${id}`
}

/** Later values win, but an empty value does not clear an earlier one. */
function merge(before: ProviderMetadata, added: SharedV4ProviderMetadata): ProviderMetadata {
  const merged = { ...before }
  for (const [namespace, members] of Object.entries(added)) {
    const given = Object.entries(members).filter(([, value]) => value != null)
    if (given.length > 0) merged[namespace] = { ...(merged[namespace] as object), ...Object.fromEntries(given) }
  }
  return merged
}

function hasMembers(metadata: ProviderMetadata): boolean {
  return Object.keys(metadata).length > 0
}
