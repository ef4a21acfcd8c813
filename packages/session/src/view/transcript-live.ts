/**
 * Streaming text that is not in the log yet. It may be lost at any time; the line that completes its item has
 * all of it.
 */
export interface LiveText {
  /** `delta` appends at `off`; `partial` replaces from `off`, because the sender no longer has earlier text. */
  type: 'delta' | 'partial'
  /** The id of the entry it will be part of; for tool output, the id of the call or of the entry of its result. */
  item: string
  /** The index of its content block. */
  part: number
  kind: LiveKind
  /** Offset in UTF-16 code units, from the start of the part. */
  off: number
  text: string
  run?: string
}

export type LiveKind = 'text' | 'reasoning' | 'tool_input' | 'tool_output'

export interface InFlightItem {
  readonly item: string
  readonly run?: string
  /** By part, then by kind. */
  readonly parts: readonly InFlightPart[]
  /** Text in between was missed: request it again from the sender. */
  readonly needsResync: boolean
}

export interface InFlightPart {
  readonly part: number
  readonly kind: LiveKind
  /** Offset of `text`; earlier text is not held. */
  readonly off: number
  readonly text: string
  readonly needsResync: boolean
}

/** Adds live text. Returns the same object if nothing changed. */
export function addLiveText(before: InFlightItem | undefined, live: LiveText): InFlightItem {
  const { item, run } = live
  const known = before ?? { item, ...(run !== undefined && { run }), parts: [], needsResync: false }
  const isThis = (part: InFlightPart): boolean => part.part === live.part && part.kind === live.kind
  const old = known.parts.find(isThis)
  const changed = live.type === 'delta' ? appendText(old, live) : replaceText(old, live)
  if (changed === old) return known
  const parts = [...known.parts.filter((part) => !isThis(part)), changed].sort(inOrder)
  return { ...known, parts, needsResync: parts.some((part) => part.needsResync) }
}

/**
 * Tool output is unbounded; of each part only the newest text is held, between one and two times this many code
 * units.
 */
export const maxLiveText = 256 * 1024

function appendText(old: InFlightPart | undefined, { part, kind, off, text }: LiveText): InFlightPart {
  const known = old ?? { part, kind, off: 0, text: '', needsResync: false }
  const end = known.off + known.text.length
  if (off > end) return known.needsResync ? known : { ...known, needsResync: true }
  const added = text.slice(end - off)
  if (added === '' && old) return old
  return bounded({ ...known, text: known.text + added, needsResync: false })
}

/** Text before `off` is kept only if it is contiguous, so that the shown text has no holes. */
function replaceText(old: InFlightPart | undefined, { part, kind, off, text }: LiveText): InFlightPart {
  const reaches = old && old.off < off && old.off + old.text.length >= off
  const start = reaches ? old.off : off
  const kept = reaches ? old.text.slice(0, off - old.off) : ''
  const isKnown = old && old.off === start && !old.needsResync && old.text === kept + text
  return isKnown ? old : bounded({ part, kind, off: start, text: kept + text, needsResync: false })
}

function bounded(part: InFlightPart): InFlightPart {
  if (part.text.length <= 2 * maxLiveText) return part
  let cut = part.text.length - maxLiveText
  if (isLowSurrogate(part.text.charCodeAt(cut))) cut++
  return { ...part, off: part.off + cut, text: part.text.slice(cut) }
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}

function inOrder(left: InFlightPart, right: InFlightPart): number {
  return left.part - right.part || kinds.indexOf(left.kind) - kinds.indexOf(right.kind)
}

const kinds: readonly LiveKind[] = ['reasoning', 'text', 'tool_input', 'tool_output']
