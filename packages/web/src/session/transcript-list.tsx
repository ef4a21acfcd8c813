import { groupItems, type GroupedItems, type TranscriptRow } from '@tapetree/session/screen'
import type { Transcript, TranscriptItem } from '@tapetree/session/view'
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type ReactNode,
  type RefObject,
} from 'react'
import type { Excerpt, Tail } from './history.ts'
import { LiveRow, Row } from './rows.tsx'
import { OpenedContext, RowContext, useSelected, type OpenedSession } from './use-session.ts'

/** A row that is drawn: of the transcript, text that is still being written, or the place of entries that are not loaded. */
type ShownRow = TranscriptRow | { type: 'live'; key: string } | { type: 'note'; key: string; text: string } | Unloaded

interface Unloaded {
  type: 'unloaded'
  key: 'older' | 'between'
  /** The lines in it. */
  from: number
  to: number
  height: number
}

interface TranscriptListProps {
  opened: OpenedSession
  /** Shows this entry first, instead of the end. */
  entryId?: string | undefined
  /** Gets the function that jumps to the end. */
  newest: RefObject<(() => void) | undefined>
}

/**
 * The conversation. Only the rows near the visible part are in the page, and only entries near it are loaded, besides the
 * newest. The rest is empty space in proportion to its length, so the scroll bar reaches any place.
 */
export function TranscriptList({ opened, entryId, newest: jumper }: TranscriptListProps): ReactNode {
  const { session, history } = opened
  const place = useRef<HTMLDivElement>(null)
  const items = useSelected(opened, () => session.transcript.path.items)
  const tail = useMemo(() => tailOf(items.at(0)), [items])
  const excerpt = useSelected(opened, () => tail && history.excerpt(tail))
  const liveKeys = useSelected(opened, () => liveRowKeys(session.transcript))
  const isAttached = useSelected(opened, () => session.status.type === 'attached')

  const newest = useRef<GroupedItems>(undefined)
  newest.current = groupItems(items, newest.current)
  const newestRows = newest.current.rows
  const past = useMemo(() => groupItems(excerpt?.items ?? []), [excerpt])
  const rows = useMemo(
    () => shownRows({ past: past.rows, newest: newestRows, liveKeys, tail, excerpt }),
    [past, newestRows, liveKeys, tail, excerpt],
  )

  const isAtEnd = useRef(entryId === undefined)
  /** When it was last scrolled. */
  const seen = useRef<Measures>({ top: 0, height: 0, visible: 0 })
  const toEnd = (element: Element): void => {
    element.scrollTop = element.scrollHeight
    seen.current = measuresOf(element)
  }
  // Before the virtualizer's own listener, which draws again at once: only then is it known whether the user left the end.
  useLayoutEffect(() => {
    const element = place.current
    if (!element) return undefined
    const look = (): void => {
      const before = seen.current
      const now = measuresOf(element)
      const isSameLayout = now.height === before.height && now.visible === before.visible
      if (distanceToEnd(element) < 60) isAtEnd.current = true
      else if (isSameLayout && now.top < before.top) isAtEnd.current = false
      // Rows have grown, or something takes room from the list: no person has scrolled.
      else if (isAtEnd.current) return toEnd(element)
      seen.current = now
    }
    element.addEventListener('scroll', look, { passive: true })
    // A notice or a longer draft takes room from the transcript.
    const resized = new ResizeObserver(() => {
      if (isAtEnd.current) toEnd(element)
    })
    resized.observe(element)
    return () => {
      element.removeEventListener('scroll', look)
      resized.disconnect()
    }
  }, [])
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: (index) => heightOf(rows[index]),
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    overscan: 8,
    // Keeps the position when rows are added above.
    anchorTo: 'end',
  })
  const height = virtualizer.getTotalSize()
  useLayoutEffect(() => {
    if (isAtEnd.current && place.current) toEnd(place.current)
  }, [rows, height])

  /** The line to show when it is loaded. */
  const wanted = useRef<{ seq?: number; entryId?: string }>(undefined)
  const toNewest = (): void => {
    isAtEnd.current = true
    wanted.current = undefined
    if (place.current) toEnd(place.current)
  }
  useEffect(() => void (jumper.current = toNewest))

  useLayoutEffect(() => {
    const { seq = Infinity, entryId: id } = wanted.current ?? {}
    const index = (excerpt?.items ?? []).findIndex((item) => item.id === id || item.seq >= seq)
    if (index < 0) return
    wanted.current = undefined
    virtualizer.scrollToIndex(indexOfItem(rows, past, index), { align: 'start' })
  }, [excerpt, past, rows, virtualizer])

  const [isFar, setFar] = useState(false)
  const jump = useRef<ReturnType<typeof setTimeout>>(undefined)
  const look = (): void => {
    const element = place.current
    if (!element) return
    setFar(distanceToEnd(element) > 400)
    clearTimeout(jump.current)
    if (!tail) return
    const need = missingAt(element, rows, virtualizer)
    if (!need) return
    if (need.type !== 'jump') {
      const load = need.type === 'up' ? history.extendUp(tail) : history.extendDown(tail)
      void load.catch(() => undefined)
      return
    }
    // Only where the user stops: a drag of the scroll bar passes over most places.
    jump.current = setTimeout(() => {
      wanted.current = need.keepsPlace ? undefined : { seq: need.seq }
      void history.goTo({ seq: need.seq }, tail).catch(() => undefined)
    }, jumpDelayMs)
  }
  // After every drawing: only then does the virtualizer know what is in view, and what was loaded may be too short.
  useEffect(look)
  useEffect(() => () => clearTimeout(jump.current), [])

  useEffect(() => {
    if (entryId === undefined || items.length === 0) return
    // oxlint-disable-next-line no-use-before-define
    showEntry(entryId)
  }, [entryId, items.length > 0])
  const showEntry = (id: string): void => {
    isAtEnd.current = false
    const index = items.slice().findIndex((item) => item.id === id)
    if (index >= 0 && newest.current)
      virtualizer.scrollToIndex(indexOfItem(rows, newest.current, index), { align: 'start' })
    else if (tail) {
      wanted.current = { entryId: id }
      void history.goTo({ entryId: id }, tail).catch(() => undefined)
    }
  }

  // A session that runs for days: older entries are loaded again when they are needed.
  useEffect(() => {
    if (items.length > maxNewest && isAtEnd.current) session.forgetOlder(keptNewest)
  }, [items, session])

  return (
    <OpenedContext value={opened}>
      <RowContext value={Row}>
        <div className="transcript-frame">
          <div className="transcript" ref={place} onScroll={look} tabIndex={0} role="log" aria-label="Conversation">
            <div className="rows" style={{ height }}>
              {virtualizer.getVirtualItems().map(({ index, key, start }) => {
                const row = rows[index]
                if (!row) return null
                const style = { transform: `translateY(${start}px)` }
                if (row.type === 'unloaded')
                  return (
                    <div key={key} className="unloaded" style={{ ...style, height: row.height }}>
                      <p className="fact">Loading…</p>
                    </div>
                  )
                return (
                  <div
                    key={key}
                    data-index={index}
                    ref={virtualizer.measureElement}
                    className={isOf(row, entryId) ? 'row shown' : 'row'}
                    style={style}
                  >
                    {row.type === 'live' ? (
                      <LiveRow opened={opened} rowKey={row.key} />
                    ) : row.type === 'note' ? (
                      <p className="fact">{row.text}</p>
                    ) : (
                      <Row row={row} />
                    )}
                  </div>
                )
              })}
            </div>
            {rows.length === 0 && isAttached && <p className="faint centered">Nothing has been said yet.</p>}
          </div>
          {isFar && (
            <button className="jump" onClick={toNewest}>
              Jump to newest ↓
            </button>
          )}
        </div>
      </RowContext>
    </OpenedContext>
  )
}

/** The open session holds at most this many items, and fewer when it drops the others. */
const maxNewest = 3000
const keptNewest = 500
const jumpDelayMs = 60
/** In pixels: entries are loaded before they come into view. */
const nearby = 1500

interface Measures {
  readonly top: number
  readonly height: number
  readonly visible: number
}

function measuresOf({ scrollTop, scrollHeight, clientHeight }: Element): Measures {
  return { top: scrollTop, height: scrollHeight, visible: clientHeight }
}

function distanceToEnd({ scrollHeight, scrollTop, clientHeight }: Element): number {
  return scrollHeight - scrollTop - clientHeight
}

/** Undefined if the session is loaded from its first entry on. */
function tailOf(first: TranscriptItem | undefined): Tail | undefined {
  return first?.type === 'gap' && first.gap.type === 'not_loaded' ? { seq: first.seq, parentId: first.id } : undefined
}

function heightOf(row: ShownRow | undefined): number {
  return row?.type === 'unloaded' ? row.height : 64
}

interface RowSources {
  past: readonly TranscriptRow[]
  newest: readonly TranscriptRow[]
  liveKeys: string
  tail: Tail | undefined
  excerpt: Excerpt | undefined
}

function shownRows({ past, newest, liveKeys, tail, excerpt }: RowSources): ShownRow[] {
  const loaded = newest.filter(isShown)
  const live = liveKeys === '' ? [] : liveKeys.split('\n').map((key): ShownRow => ({ type: 'live', key }))
  if (!tail) return [...loaded, ...live]
  // Browsers limit the height of an element.
  const perLine = Math.min(40, 10_000_000 / tail.seq)
  const unloaded = (key: Unloaded['key'], from: number, to: number): Unloaded[] =>
    to < from ? [] : [{ type: 'unloaded', key, from, to, height: Math.max(80, (to - from + 1) * perLine) }]
  const rest = [...loaded.slice(1), ...live]
  if (!excerpt) return [...unloaded('older', 1, tail.seq - 1), ...rest]
  const note = { type: 'note' as const, key: 'note', text: 'These messages are on another branch of the session.' }
  return [
    ...unloaded('older', 1, excerpt.from - 1),
    ...(excerpt.isOtherBranch ? [note] : []),
    ...past.filter(isShown),
    ...(excerpt.isJoined ? [] : unloaded('between', Math.min(excerpt.to + 1, tail.seq - 1), tail.seq - 1)),
    ...rest,
  ]
}

/** The first shown row from this item on. */
function indexOfItem(rows: readonly ShownRow[], { rows: grouped, starts }: GroupedItems, item: number): number {
  const row = grouped.slice(starts[item]).find(isShown)
  return row ? rows.indexOf(row) : rows.length - 1
}

/** Facts that are not part of the conversation are hidden. */
function isShown(row: TranscriptRow): boolean {
  if (row.type !== 'item') return true
  const { item } = row
  return item.type !== 'system' && !(item.type === 'custom' && item.custom.type === 'entry')
}

function isOf(row: ShownRow, entryId: string | undefined): boolean {
  return entryId !== undefined && 'item' in row && row.item.id === entryId
}

type Missing = { type: 'up' } | { type: 'down' } | { type: 'jump'; seq: number; keepsPlace: boolean }

/** What to load for the visible part. */
function missingAt(
  { scrollTop, clientHeight }: Element,
  rows: readonly ShownRow[],
  virtualizer: Virtualizer<HTMLDivElement, Element>,
): Missing | undefined {
  const bottom = scrollTop + clientHeight
  for (const { index, start, end } of virtualizer.getVirtualItems()) {
    const row = rows[index]
    if (row?.type !== 'unloaded' || end < scrollTop - nearby || start > bottom + nearby) continue
    if (row.key === 'older' && end < scrollTop + nearby) return { type: 'up' }
    if (row.key === 'between' && start > bottom - nearby && start > scrollTop) return { type: 'down' }
    // Just above the newest entries, which stay where they are.
    if (row.key === 'between' && end > scrollTop && end < bottom + nearby / 2)
      return { type: 'jump', seq: row.to + 1, keepsPlace: true }
    const share = Math.min(1, Math.max(0, (scrollTop + clientHeight / 4 - start) / (end - start)))
    return { type: 'jump', seq: Math.round(row.from + share * (row.to - row.from)), keepsPlace: false }
  }
  return undefined
}

/** Text in flight has the key of the part that it will become, so its row stays the same. */
function liveRowKeys({ inFlight }: Transcript): string {
  let keys = ''
  for (const { item, parts } of inFlight.values())
    for (const { kind, text, part } of parts)
      if (kind !== 'tool_output' && text !== '') keys += `${keys === '' ? '' : '\n'}${item}/${part}`
  return keys
}
