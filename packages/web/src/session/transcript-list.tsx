import { groupItems, type GroupedItems, type TranscriptRow } from '@tapetree/session/screen'
import type { InFlightItem, InFlightPart, Transcript } from '@tapetree/session/view'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import type { RowContext } from './row-context.ts'
import { LiveRow, Row } from './rows.tsx'
import type { OpenedSession } from './use-session.ts'

/** A row that is drawn, or text that is still being written. */
type ShownRow = TranscriptRow | { type: 'live'; key: string; part: InFlightPart }

/** The conversation. Only the rows near the visible part are in the page; older ones are loaded when they come near. */
export function TranscriptList({ opened, isRunning }: { opened: OpenedSession; isRunning: boolean }): ReactNode {
  const { session } = opened
  const { transcript } = session
  const place = useRef<HTMLDivElement>(null)
  const grouped = useRef<GroupedItems>(undefined)
  const { items } = transcript.path
  grouped.current = groupItems(itemsIn(items), grouped.current)
  const rows = shownRows(grouped.current.rows, transcript)
  const first = items.at(0)
  const hasOlder = first?.type === 'gap' && first.gap.type === 'not_loaded'

  const isAtEnd = useRef(true)
  // Before the virtualizer's own listener, which draws again at once: only then is it known whether the user left the end.
  useLayoutEffect(() => {
    const element = place.current
    const look = (): void => void (isAtEnd.current = element === null || distanceToEnd(element) < 60)
    element?.addEventListener('scroll', look, { passive: true })
    return () => element?.removeEventListener('scroll', look)
  }, [])
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => 64,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 8,
    // Keeps the position when older rows are added above.
    anchorTo: 'end',
  })
  const height = virtualizer.getTotalSize()
  useLayoutEffect(() => {
    const element = place.current
    if (isAtEnd.current && element) element.scrollTop = element.scrollHeight
  }, [transcript, height])

  const isLoading = useRef(false)
  const [isFar, setFar] = useState(false)
  const look = (): void => {
    const element = place.current
    if (!element) return
    setFar(distanceToEnd(element) > 400)
    if (element.scrollTop > 600 || !hasOlder || isLoading.current) return
    isLoading.current = true
    void session
      .loadOlder(100)
      .catch(() => undefined)
      .finally(() => void (isLoading.current = false))
  }

  // Also without scrolling: a page of older rows may be shorter than the screen.
  useEffect(look, [transcript, height])

  const context = useMemo(
    (): RowContext => ({
      isLive: isRunning,
      asked: new Set(transcript.permissions.flatMap(({ callId }) => (callId === undefined ? [] : [callId]))),
      outputOf: (callId) => outputIn(transcript.inFlight.get(callId)),
    }),
    [isRunning, transcript.permissions, transcript.inFlight],
  )

  return (
    <div className="transcript-frame">
      <div className="transcript" ref={place} onScroll={look} tabIndex={0} role="log" aria-label="Conversation">
        <div className="rows" style={{ height }}>
          {virtualizer.getVirtualItems().map(({ index, key, start }) => {
            const row = rows[index]
            return (
              row && (
                <div
                  key={key}
                  data-index={index}
                  ref={virtualizer.measureElement}
                  className="row"
                  style={{ transform: `translateY(${start}px)` }}
                >
                  {row.type === 'live' ? <LiveRow part={row.part} /> : <Row row={row} context={context} />}
                </div>
              )
            )
          })}
        </div>
        {rows.length === 0 && session.status.type === 'attached' && (
          <p className="faint centered">Nothing has been said yet.</p>
        )}
      </div>
      {isFar && (
        <button
          className="jump"
          onClick={() => {
            isAtEnd.current = true
            const element = place.current
            if (element) element.scrollTop = element.scrollHeight
          }}
        >
          Jump to newest ↓
        </button>
      )}
    </div>
  )
}

function distanceToEnd({ scrollHeight, scrollTop, clientHeight }: Element): number {
  return scrollHeight - scrollTop - clientHeight
}

function* itemsIn(items: Transcript['path']['items']): Generator<NonNullable<ReturnType<typeof items.at>>> {
  yield* items
}

/** Text in flight has the key of the part that it will become, so its row stays the same. */
function shownRows(rows: readonly TranscriptRow[], { inFlight }: Transcript): ShownRow[] {
  const live = [...inFlight.values()].flatMap((item) =>
    item.parts
      .filter(({ kind, text }) => kind !== 'tool_output' && text !== '')
      .map((part): ShownRow => ({ type: 'live', key: `${item.item}/${part.part}`, part })),
  )
  const shown = rows.filter((row) => row.type !== 'item' || !isHidden(row))
  return [...shown, ...live]
}

/** Facts that are not part of the conversation. */
function isHidden({ item }: Extract<TranscriptRow, { type: 'item' }>): boolean {
  return item.type === 'system' || (item.type === 'custom' && item.custom.type === 'entry')
}

function outputIn(item: InFlightItem | undefined): string | undefined {
  return item?.parts.find(({ kind }) => kind === 'tool_output')?.text
}
