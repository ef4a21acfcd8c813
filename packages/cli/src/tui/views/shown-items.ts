import { emptyTranscript, type InFlightItem, type Transcript, type TranscriptItem } from '@tapetree/session'
import { Highlighter } from '../markdown/highlight.ts'
import type { Theme } from '../theme.ts'
import { CallNewsFeed, RunFailure, runNews } from './run-news.ts'
import { DraftView } from './draft-view.ts'
import type { ItemContext } from './item-context.ts'
import { renderItem } from './render-item.ts'

export interface ShownItemsOptions {
  theme: Theme
  now: () => number
  /** Something must be redrawn, such as code whose grammar has loaded. */
  onChange: () => void
  /** All lines are requested each time, because the terminal scrolls: then all of them are cached. */
  keepsAll?: boolean
}

/**
 * The blocks of a conversation, top to bottom: the items of the path, the draft, and the state of the run. Renders a block only when its
 * lines are requested. Heights of other blocks are remembered from the last rendering, or estimated.
 */
export class ShownItems {
  readonly #options: ShownItemsOptions
  readonly #highlighter: Highlighter
  readonly #cache: LineCache
  readonly #news: CallNewsFeed
  readonly #drafts = new Map<string, DraftView>()
  /** Items that are unfolded individually. */
  readonly #unfolded = new Set<string>()
  #isUnfolded = false
  #transcript = emptyTranscript()
  #items: TranscriptItem[] = []
  #heights: (number | undefined)[] = []
  readonly #measured = { rows: 0, count: 0 }
  #inFlight: InFlightItem[] = []
  #liveIndex = -1
  #failure: RunFailure | undefined

  constructor(options: ShownItemsOptions) {
    this.#options = options
    this.#cache = new LineCache(options.keepsAll ? Infinity : maxCachedLines)
    this.#news = new CallNewsFeed(options.now)
    this.#highlighter = new Highlighter(() => {
      this.forget()
      options.onChange()
    })
  }

  get items(): readonly TranscriptItem[] {
    return this.#items
  }

  /** The state of the run comes last, even if it is empty. */
  get count(): number {
    return this.#items.length + this.#inFlight.length + 1
  }

  update(transcript: Transcript): void {
    if (transcript.path.items !== this.#transcript.path.items) this.#takeItems(transcript)
    this.#transcript = transcript
    this.#failure = RunFailure.after(transcript, this.#failure)
    this.#liveIndex = transcript.run ? this.#items.findLastIndex(({ type }) => type === 'assistant') : -1
    this.#news.update(transcript, this.#items[this.#liveIndex])
    this.#inFlight = [...transcript.inFlight.values()].filter(({ item }) => !this.#news.isCall(item))
    for (const id of this.#drafts.keys()) if (!transcript.inFlight.has(id)) this.#drafts.delete(id)
  }

  idAt(index: number): string | undefined {
    return this.#items[index]?.id ?? this.#inFlight[index - this.#items.length]?.item
  }

  indexOf(id: string): number {
    const index = this.#items.findLastIndex((item) => item.id === id)
    if (index >= 0) return index
    const draft = this.#inFlight.findIndex(({ item }) => item === id)
    return draft < 0 ? -1 : this.#items.length + draft
  }

  /** With an empty line below, if there are any. */
  linesAt(index: number, width: number): readonly string[] {
    const item = this.#items[index]
    if (!item) return spaced(this.#tailLines(index - this.#items.length, width))
    const lines = index === this.#liveIndex ? this.#liveLines(item, width) : this.#keptLines(item, { index, width })
    this.#measure(index, lines.length)
    return lines
  }

  /** The height when it was last rendered; before that, the average of the others. */
  heightAt(index: number): number {
    return this.#heights[index] ?? Math.round(this.#measured.rows / Math.max(1, this.#measured.count))
  }

  toggle(): void {
    this.#isUnfolded = !this.#isUnfolded
    this.#unfolded.clear()
  }

  unfold(id: string): void {
    this.#unfolded.add(id)
  }

  /** Redraws everything. */
  forget(): void {
    this.#cache.clear()
    for (const draft of this.#drafts.values()) draft.forget()
  }

  #takeItems({ path }: Transcript): void {
    const { items } = path
    this.#items.length = Math.min(this.#items.length, items.length)
    this.#heights.length = this.#items.length
    for (let index = 0; index < items.length; index++) {
      const item = items.at(index)
      if (item && this.#items[index] !== item) {
        if (this.#items[index]?.id !== item.id) this.#heights[index] = undefined
        this.#items[index] = item
      }
    }
  }

  #measure(index: number, height: number): void {
    if (this.#heights[index] === undefined) {
      this.#measured.rows += height
      this.#measured.count++
    }
    this.#heights[index] = height
  }

  #keptLines(item: TranscriptItem, { index, width }: { index: number; width: number }): string[] {
    const context = this.#context(item.id)
    return this.#cache.get(item, `${width} ${context.isUnfolded}`, () => {
      const summarized = summarizedBy(this.#items, index)
      return spaced(renderItem(item, { ...context, ...(summarized !== undefined && { summarized }) })(width))
    })
  }

  /** Some of its calls are active: only those are rendered each time. */
  #liveLines(item: TranscriptItem, width: number): string[] {
    const context = this.#context(item.id)
    const how = `part ${width} ${context.isUnfolded}`
    const live: ItemContext = {
      ...context,
      isLive: true,
      callNews: (callId) => this.#news.of(callId),
      remember: (part, draw) => this.#cache.get(part, how, draw),
    }
    return spaced(renderItem(item, live)(width))
  }

  #tailLines(place: number, width: number): string[] {
    const item = this.#inFlight[place]
    if (!item) return runNews(this.#transcript, { failure: this.#failure, theme: this.#options.theme }, width)
    const draft = this.#drafts.get(item.item) ?? new DraftView(this.#options.now())
    this.#drafts.set(item.item, draft)
    return draft.lines(item, this.#context(item.item), width)
  }

  #context(id: string): ItemContext & { isUnfolded: boolean } {
    const { theme, now } = this.#options
    return { theme, now, highlighter: this.#highlighter, isUnfolded: this.#isUnfolded || this.#unfolded.has(id) }
  }
}

/** Some hundred screens. */
const maxCachedLines = 20_000

function spaced(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [...lines, '']
}

/** How many messages a compaction replaces, if all of them are loaded. */
function summarizedBy(items: readonly TranscriptItem[], index: number): number | undefined {
  const item = items[index]
  if (item?.type !== 'compaction' || item.firstKeptEntryId === undefined) return undefined
  let place = index - 1
  while (place >= 0 && items[place]?.id !== item.firstKeptEntryId) place--
  if (place < 0) return undefined
  let messages = 0
  for (const before of items.slice(0, place).toReversed()) {
    if (before.type === 'compaction') break
    if (before.type === 'gap') return undefined
    if (before.type === 'user' || before.type === 'assistant' || before.type === 'bash') messages++
  }
  return messages
}

/** Rendered lines, by source object and options. Evicts the least recently used when there are too many. */
class LineCache {
  readonly #drawn = new Map<object, { how: string; lines: string[] }>()
  readonly #maxLines: number
  #lines = 0

  constructor(maxLines: number) {
    this.#maxLines = maxLines
  }

  get(key: object, how: string, draw: () => string[]): string[] {
    const known = this.#drawn.get(key)
    if (known) {
      this.#drawn.delete(key)
      if (known.how === how) {
        this.#drawn.set(key, known)
        return known.lines
      }
      this.#lines -= known.lines.length
    }
    const lines = draw()
    this.#drawn.set(key, { how, lines })
    this.#lines += lines.length
    this.#dropOldest(key)
    return lines
  }

  clear(): void {
    this.#drawn.clear()
    this.#lines = 0
  }

  #dropOldest(newest: object): void {
    for (const [key, { lines }] of this.#drawn) {
      if (this.#lines <= this.#maxLines || key === newest) return
      this.#drawn.delete(key)
      this.#lines -= lines.length
    }
  }
}
