import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { compareLink, entryLink, screenLink, sessionLink } from '../route.ts'
import { LoadState, Screen } from '../screen.tsx'
import { mayDo, rest, sentenceOf, type Role } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import { withSession } from '../with-session.ts'
import { drawTree, type TreeDrawing, type TreeEntry, type TreeRow } from './lanes.ts'
import './tree.css'

interface LoadedTree {
  entries: TreeEntry[]
  leafId: string | null
  hasBefore: boolean
}

const pageSize = 1000

/** All branches of a session, drawn in the order of the log. */
export function TreeScreen({ sessionId, title, role }: { sessionId: string; title: string; role: Role }): ReactNode {
  const [pages, setPages] = useState(1)
  const load = useCallback((signal: AbortSignal) => loadTree({ sessionId, pages, signal }), [sessionId, pages])
  const { value, problem, reload } = useLoaded(load)
  const [showsAll, setShowsAll] = useState(false)
  const [selectedId, setSelectedId] = useState<string>()
  const [markedId, setMarkedId] = useState<string>()
  const drawing = useMemo(
    () => drawTree(value?.entries ?? [], { leafId: value?.leafId ?? null, showsAll }),
    [value, showsAll],
  )
  const selected = drawing.rows.find(({ entry }) => entry.id === selectedId)
  return (
    <Screen
      title={`Tree of ${title}`}
      back={{ href: sessionLink(sessionId), name: 'Back to the session' }}
      tools={
        <label className="check">
          <input type="checkbox" checked={showsAll} onChange={() => setShowsAll(!showsAll)} /> All entries
        </label>
      }
    >
      {value ? (
        <div className="tree-frame">
          {value.hasBefore && (
            <button className="quiet small" onClick={() => setPages(pages + 1)}>
              Load earlier entries
            </button>
          )}
          <TreeList drawing={drawing} leafId={value.leafId} selectedId={selectedId} onSelect={setSelectedId} />
          {selected && (
            <EntryPanel
              key={selected.entry.id}
              row={selected}
              sessionId={sessionId}
              leafId={value.leafId}
              markedId={markedId}
              role={role}
              onMark={setMarkedId}
              onChange={reload}
              onClose={() => setSelectedId(undefined)}
            />
          )}
        </div>
      ) : (
        <LoadState problem={problem} onRetry={reload} />
      )}
    </Screen>
  )
}

/** The newest entries, a number of pages back. */
async function loadTree(given: { sessionId: string; pages: number; signal: AbortSignal }): Promise<LoadedTree> {
  const { sessionId, pages, signal } = given
  let { nodes, leafId, hasBefore } = await rest.tree(sessionId, { limit: pageSize }, signal)
  for (let page = 1; page < pages && hasBefore; page++) {
    const before = await rest.tree(sessionId, { limit: pageSize, before: nodes[0]?.seq ?? 1 }, signal)
    nodes = [...before.nodes, ...nodes]
    hasBefore = before.hasBefore
  }
  return { entries: nodes, leafId, hasBefore }
}

interface TreeListProps {
  drawing: TreeDrawing
  leafId: string | null
  selectedId: string | undefined
  onSelect: (entryId: string) => void
}

const rowHeight = 44
const laneWidth = 18

function TreeList({ drawing, leafId, selectedId, onSelect }: TreeListProps): ReactNode {
  const place = useRef<HTMLDivElement>(null)
  const { rows, laneCount } = drawing
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => rows[index]?.entry.id ?? index,
    overscan: 12,
  })
  useEffect(() => {
    virtualizer.scrollToIndex(rows.length - 1)
    // Only when the tree is loaded or drawn in another way.
  }, [rows.length])
  const move = (event: KeyboardEvent): void => {
    const index = rows.findIndex(({ entry }) => entry.id === selectedId)
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1 }[event.key]
    const row = to === undefined ? undefined : rows[to]
    if (to === undefined || !row) return
    event.preventDefault()
    onSelect(row.entry.id)
    virtualizer.scrollToIndex(to)
    requestAnimationFrame(() => place.current?.querySelector<HTMLElement>(`[data-index="${to}"] button`)?.focus())
  }
  return (
    <div className="tree" ref={place}>
      {rows.length === 0 && <p className="faint padded">This session has no entries yet.</p>}
      <ul style={{ height: virtualizer.getTotalSize() }} onKeyDown={move} aria-label="Entries of all branches">
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index]
          return (
            row && (
              <li
                key={key}
                data-index={index}
                aria-setsize={rows.length}
                aria-posinset={index + 1}
                style={{ transform: `translateY(${start}px)` }}
              >
                <Lanes drawing={drawing} index={index} width={Math.min(laneCount, maxLanes) * laneWidth} />
                <button
                  className="tree-row"
                  aria-pressed={row.entry.id === selectedId}
                  onClick={() => onSelect(row.entry.id)}
                >
                  <span className="kind">{kindOf(row.entry)}</span>
                  <span className="text">{row.entry.preview || '(no text)'}</span>
                  {row.entry.label !== undefined && <span className="tag">{row.entry.label}</span>}
                  {row.entry.id === leafId && <span className="tag here">you are here</span>}
                </button>
              </li>
            )
          )
        })}
      </ul>
    </div>
  )
}

/** Further branches share the last lane. */
const maxLanes = 8

/** The part of the drawing in one row. */
function Lanes({ drawing, index, width }: { drawing: TreeDrawing; index: number; width: number }): ReactNode {
  const row = drawing.rows[index]
  const center = (lane: number): number => (Math.min(lane, maxLanes - 1) + 0.5) * laneWidth
  const middle = rowHeight / 2
  const lines = drawing.edges
    .filter(({ from, to }) => from <= index && index <= to)
    .map(({ from, to, fromLane, toLane, isCurrent }) => {
      const [x, end] = [center(fromLane), center(toLane)]
      const path =
        index === from
          ? `M${x} ${middle}C${x} ${rowHeight} ${end} ${middle} ${end} ${rowHeight}`
          : `M${end} 0V${index === to ? middle : rowHeight}`
      return { key: `${from}-${to}`, path, isCurrent }
    })
    // The current branch is drawn over the others.
    .sort((left, right) => Number(left.isCurrent) - Number(right.isCurrent))
  return (
    <svg className="lanes" width={width} height={rowHeight} aria-hidden="true">
      {lines.map(({ key, path, isCurrent }) => (
        <path key={key} d={path} data-current={isCurrent} />
      ))}
      {row && (
        <circle
          cx={center(row.lane)}
          cy={middle}
          r={row.entry.type === 'message' ? 4.5 : 6}
          data-current={row.isCurrent}
          data-summary={row.entry.type !== 'message'}
        />
      )}
    </svg>
  )
}

interface EntryPanelProps {
  row: TreeRow
  sessionId: string
  leafId: string | null
  /** The entry that waits for another one to be compared with. */
  markedId: string | undefined
  role: Role
  onMark: (entryId: string | undefined) => void
  onChange: () => void
  onClose: () => void
}

function EntryPanel(props: EntryPanelProps): ReactNode {
  const { row, sessionId, leafId, markedId, role, onMark, onChange, onClose } = props
  const { entry, isCurrent } = row
  const [label, setLabel] = useState(entry.label ?? '')
  const [problem, setProblem] = useState<string>()
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setProblem(undefined)
    try {
      await work()
    } catch (error) {
      setProblem(sentenceOf(error))
    }
  }
  const other = markedId ?? (isCurrent ? undefined : (leafId ?? undefined))
  return (
    <section
      className="tree-panel"
      aria-label="Selected entry"
      onKeyDown={(event) => event.key === 'Escape' && onClose()}
    >
      <div className="tree-panel-head">
        <b>{kindOf(entry)}</b>
        <small>
          {new Date(entry.timestamp).toLocaleString()}
          {row.hiddenCount > 0 && ` · ${row.hiddenCount} entries before it are not drawn`}
        </small>
        <button className="quiet small" onClick={onClose}>
          Close
        </button>
      </div>
      <p className="plain">{entry.preview || '(no text)'}</p>
      {problem !== undefined && (
        <p className="notice failed" role="alert">
          {problem}
        </p>
      )}
      <div className="buttons">
        <a className="button" href={entryLink(sessionId, entry.id)}>
          Go to
        </a>
        {mayDo(role, 'drive') && entry.id !== leafId && (
          <button
            className="quiet"
            onClick={() =>
              void attempt(async () => {
                await withSession(sessionId, (session) => session.navigate(entry.id))
                location.hash = sessionLink(sessionId)
              })
            }
          >
            Branch from here
          </button>
        )}
        {other !== undefined && other !== entry.id && (
          <a className="button quiet" href={compareLink(sessionId, { left: other, right: entry.id })}>
            {markedId === undefined ? 'Compare with the current branch' : 'Compare with the marked entry'}
          </a>
        )}
        <button className="quiet" onClick={() => onMark(markedId === entry.id ? undefined : entry.id)}>
          {markedId === entry.id ? 'Unmark' : 'Mark to compare'}
        </button>
        <a className="button quiet" href={screenLink(sessionId, 'context', entry.id)}>
          What the model saw
        </a>
      </div>
      {mayDo(role, 'queue') && (
        <form
          className="with-button"
          onSubmit={(event) => {
            event.preventDefault()
            void attempt(async () => {
              await withSession(sessionId, (session) => session.run('label', { entry_id: entry.id, label }))
              onChange()
            })
          }}
        >
          <label className="field">
            Label
            <input value={label} maxLength={1000} onChange={(event) => setLabel(event.target.value)} />
          </label>
          <button className="quiet">Save label</button>
        </form>
      )}
    </section>
  )
}

function kindOf({ type, role }: TreeEntry): string {
  return kinds[type === 'message' ? (role ?? '') : type] ?? type
}

const kinds: Readonly<Record<string, string>> = {
  user: 'You',
  assistant: 'Agent',
  tool: 'Result',
  bashExecution: 'Command',
  compaction: 'Compaction',
  branch_summary: 'Branch summary',
  model_change: 'Model',
  thinking_level: 'Thinking',
  system: 'System prompt',
}
