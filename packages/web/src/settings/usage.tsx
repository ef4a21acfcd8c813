import type { RestResults } from '@tapetree/client/types'
import { useCallback, useId, useState, type ReactNode } from 'react'
import { placeLink, sessionLink } from '../route.ts'
import { LoadState } from '../screen.tsx'
import { rest } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'

type Report = RestResults['usage']
type Counts = Report['total']

interface Bar extends Counts {
  key: string
  name: string
  href?: string
}

const periods = [7, 30, 90]

/** Cost by day, model and session. */
export function Usage(): ReactNode {
  const [days, setDays] = useState(30)
  const load = useCallback(
    (signal: AbortSignal) =>
      rest.usage({ days, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC', place: 'all' }, signal),
    [days],
  )
  const { value, problem, reload, isLoading } = useLoaded(load)
  return (
    <>
      <fieldset className="card">
        <legend>Period</legend>
        <div className="segments">
          {periods.map((each) => (
            <label key={each}>
              <input type="radio" name="period" checked={each === days} onChange={() => setDays(each)} />
              {each} days
            </label>
          ))}
        </div>
      </fieldset>
      {value ? (
        <div aria-busy={isLoading}>
          <p className="totals" role="status">
            <b>{money(value.total.cost)}</b> for {value.total.calls} calls, {tokens(value.total)} since {value.since}
          </p>
          <Days report={value} days={days} />
          <Bars title="By model" bars={modelBars(value)} />
          <Bars title="By session" bars={sessionBars(value)} />
          <p className="faint">Sessions in the trash do not count. A price that is not known counts as 0.</p>
        </div>
      ) : (
        <LoadState problem={problem} onRetry={reload} />
      )}
    </>
  )
}

/** One column for each day, also for days without a call. */
function Days({ report, days }: { report: Report; days: number }): ReactNode {
  const title = useId()
  const known = new Map(report.days.map((each) => [each.day, each]))
  const all = daysFrom(report.since, days).map((day) => ({ day, cost: known.get(day)?.cost ?? 0 }))
  const highest = Math.max(...all.map(({ cost }) => cost)) || 1
  const bars = report.days.map((each): Bar => ({ ...each, key: each.day, name: each.day }))
  return (
    <section className="card" aria-labelledby={title}>
      <h2 id={title}>By day</h2>
      <svg
        className="columns"
        viewBox={`0 0 ${all.length * 10} 100`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Cost by day; the highest is ${money(highest)}. The table below has the numbers.`}
      >
        {all.map(({ day, cost }, index) => {
          const height = cost === 0 ? 1 : Math.max(2, (cost / highest) * 98)
          return (
            <rect key={day} x={index * 10 + 1} y={100 - height} width={8} height={height} data-empty={cost === 0}>
              <title>{`${day}: ${money(cost)}`}</title>
            </rect>
          )
        })}
      </svg>
      <div className="axis" aria-hidden="true">
        <span>{all[0]?.day}</span>
        <span>highest {money(highest)}</span>
        <span>{all.at(-1)?.day}</span>
      </div>
      <UsageTable name="Day" bars={bars} />
    </section>
  )
}

function Bars({ title, bars }: { title: string; bars: readonly Bar[] }): ReactNode {
  const id = useId()
  const highest = Math.max(...bars.map(({ cost }) => cost), 0) || 1
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <ul className="bars">
        {bars.slice(0, 10).map(({ key, name, href, cost }) => (
          <li key={key}>
            {href === undefined ? <span>{name}</span> : <a href={href}>{name}</a>}
            <span>{money(cost)}</span>
            <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
              <rect width={Math.max(0.5, (cost / highest) * 100)} height="4" />
            </svg>
          </li>
        ))}
      </ul>
      {bars.length === 0 && <p className="faint">No model was called in this period.</p>}
      {bars.length > 0 && <UsageTable name={title.replace('By ', '')} bars={bars} />}
    </section>
  )
}

function UsageTable({ name, bars }: { name: string; bars: readonly Bar[] }): ReactNode {
  return (
    <details>
      <summary>Table</summary>
      <div className="table-scroll" tabIndex={0} role="region" aria-label={`Usage by ${name.toLowerCase()}`}>
        <table>
          <thead>
            <tr>
              {[name, 'Calls', 'Input', 'Output', 'Cache read', 'Cache write', 'Cost'].map((each) => (
                <th key={each}>{each}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {bars.map((bar) => (
              <tr key={bar.key}>
                <th scope="row">{bar.name}</th>
                {[bar.calls, bar.inputTokens, bar.outputTokens, bar.cacheReadTokens, bar.cacheWriteTokens].map(
                  (count, index) => (
                    <td key={index} className="align-right">
                      {count.toLocaleString('en')}
                    </td>
                  ),
                )}
                <td className="align-right">{money(bar.cost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}

function modelBars({ models }: Report): Bar[] {
  return models.map((each) => {
    const name = `${each.provider}/${each.modelId}`
    return { ...each, key: name, name }
  })
}

function sessionBars({ sessions }: Report): Bar[] {
  return sessions.map((each) => ({
    ...each,
    key: each.id,
    name: `${each.name || 'Untitled session'}${each.isArchived ? ' (archived)' : ''}`,
    href: each.isArchived ? placeLink('archive') : sessionLink(each.id),
  }))
}

function daysFrom(since: string, count: number): string[] {
  const first = Date.parse(`${since}T00:00:00Z`)
  return Array.from({ length: count }, (_, index) => new Date(first + index * 86_400_000).toISOString().slice(0, 10))
}

function money(cost: number): string {
  return `$${cost.toFixed(cost > 0 && cost < 0.1 ? 4 : 2)}`
}

function tokens({ inputTokens, outputTokens }: Counts): string {
  return `${inputTokens.toLocaleString('en')} tokens in and ${outputTokens.toLocaleString('en')} out`
}
