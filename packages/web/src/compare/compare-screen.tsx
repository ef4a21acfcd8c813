import type { RestResults } from '@tapetree/client/types'
import { useCallback, type ReactNode } from 'react'
import { entryLink, screenLink } from '../route.ts'
import { LoadState, Screen } from '../screen.tsx'
import { rest } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import './compare.css'

type Side = RestResults['compare']['left']
type Entry = Side['entries'][number]

interface CompareScreenProps {
  sessionId: string
  left: string
  right: string
}

/** Two branches from the place where they part. */
export function CompareScreen({ sessionId, left, right }: CompareScreenProps): ReactNode {
  const load = useCallback(
    (signal: AbortSignal) => rest.compare(sessionId, { left, right }, signal),
    [sessionId, left, right],
  )
  const { value, problem, reload } = useLoaded(load)
  return (
    <Screen title="Compare two branches" back={{ href: screenLink(sessionId, 'tree'), name: 'Back to the tree' }}>
      {value ? (
        <div className="comparison">
          <p className="faint">
            {value.commonAncestor === null ? (
              'The branches have nothing in common.'
            ) : (
              <>
                They part after <a href={entryLink(sessionId, value.commonAncestor)}>this entry</a>.
              </>
            )}
          </p>
          <div className="sides">
            <SideColumn name="First branch" side={value.left} sessionId={sessionId} />
            <SideColumn name="Second branch" side={value.right} sessionId={sessionId} />
          </div>
        </div>
      ) : (
        <LoadState problem={problem} onRetry={reload} />
      )}
    </Screen>
  )
}

function SideColumn({ name, side, sessionId }: { name: string; side: Side; sessionId: string }): ReactNode {
  const shown = side.entries.filter(({ type }) => type !== 'label' && type !== 'session_info')
  return (
    <section aria-label={name}>
      <h2>{name}</h2>
      <dl>
        <dt>Entries</dt>
        <dd>{side.entryCount}</dd>
        <dt>Cost</dt>
        <dd>${side.usage.cost.toFixed(4)}</dd>
        <dt>Tokens</dt>
        <dd>
          {side.usage.inputTokens.toLocaleString('en')} in, {side.usage.outputTokens.toLocaleString('en')} out
        </dd>
        <dt>Time</dt>
        <dd>{spanOf(side.entries)}</dd>
      </dl>
      {side.entryCount > side.entries.length && (
        <p className="faint">Only the newest {side.entries.length} are shown.</p>
      )}
      {shown.length === 0 && <p className="faint">It ends where the other one begins.</p>}
      <ol>
        {shown.map((entry) => (
          <li key={entry.id} data-role={entry.role ?? entry.type}>
            <a href={entryLink(sessionId, entry.id)}>{entry.role ?? entry.type.replaceAll('_', ' ')}</a>
            {entry.label !== undefined && <span className="tag">{entry.label}</span>}
            <div className="plain">{entry.preview || '(no text)'}</div>
          </li>
        ))}
      </ol>
    </section>
  )
}

/** From the first entry to the last. */
function spanOf(entries: readonly Entry[]): string {
  const [first, last] = [entries[0], entries.at(-1)]
  if (!first || !last) return '0 s'
  const seconds = Math.max(0, (Date.parse(last.timestamp) - Date.parse(first.timestamp)) / 1000)
  if (seconds < 90) return `${seconds.toFixed(1)} s`
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`
}
