import type { PlaybackEvent } from '@tapetree/session/view'
import { callArgument, elapsedText } from '@tapetree/session/screen'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { Markdown } from '../markdown/markdown.tsx'
import { sessionLink } from '../route.ts'
import { Screen } from '../screen.tsx'
import { usePlayback, type Playback } from './use-playback.ts'
import './player.css'

const speeds = [
  { name: '½×', speed: 0.5 },
  { name: '1×', speed: 1 },
  { name: '2×', speed: 2 },
  { name: '5×', speed: 5 },
  { name: '20×', speed: 20 },
  { name: 'without pauses', speed: Infinity },
]

/** The recording of a session: finished, or still running. */
export function PlayerScreen({ sessionId, title }: { sessionId: string; title: string }): ReactNode {
  const [speed, setSpeed] = useState(5)
  const playback = usePlayback(sessionId, speed)
  const { problem, isLoaded, isCut } = playback
  return (
    <Screen title={`Player: ${title}`} back={{ href: sessionLink(sessionId), name: 'Back to the session' }}>
      <div className="player">
        {problem !== undefined && (
          <p className="notice failed" role="alert">
            {problem}
          </p>
        )}
        {isCut && <p className="notice">The session is very long. The player shows only its first part.</p>}
        {!isLoaded && problem === undefined && <p className="faint padded">Loading the recording…</p>}
        <Events playback={playback} />
        <Controls playback={playback} speed={speed} onSpeed={setSpeed} />
      </div>
    </Screen>
  )
}

function Events({ playback }: { playback: Playback }): ReactNode {
  const { events, position, isLoaded } = playback
  const place = useRef<HTMLDivElement>(null)
  const virtualizer = useVirtualizer({
    count: position,
    getScrollElement: () => place.current,
    estimateSize: () => 56,
    overscan: 6,
  })
  const height = virtualizer.getTotalSize()
  useEffect(() => {
    const element = place.current
    if (element) element.scrollTop = element.scrollHeight
  }, [position, height])
  return (
    <div className="player-events" ref={place} tabIndex={0} role="region" aria-label="What happened so far">
      {isLoaded && position === 0 && <p className="centered faint">Press Play, or step through the events.</p>}
      <ul style={{ height }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const event = events[index]
          return (
            event && (
              <li
                key={key}
                data-index={index}
                ref={virtualizer.measureElement}
                className={`event ${event.type}`}
                style={{ transform: `translateY(${start}px)` }}
              >
                <EventBody event={event} />
              </li>
            )
          )
        })}
      </ul>
    </div>
  )
}

/** Longer output is cut; the session has all of it. */
const maxOutput = 2000

function EventBody({ event }: { event: PlaybackEvent }): ReactNode {
  switch (event.type) {
    case 'user_prompt':
      return <div className="prompt plain">{event.text || '(an image)'}</div>
    case 'agent_message':
      return <Markdown text={event.text} />
    case 'agent_thought':
      return <div className="plain faint">{event.text}</div>
    case 'tool_call':
      return (
        <div>
          <b>{event.name}</b> <code>{callArgument(event)}</code>
        </div>
      )
    case 'tool_call_update':
      return event.status === 'running' ? (
        <small>The tool runs.</small>
      ) : (
        <pre tabIndex={0} className={`result ${event.status}`}>
          {outputText(event.output)}
        </pre>
      )
    case 'permission':
      return <small>{event.status === 'requested' ? `Asked: ${event.title}` : `Answered: ${event.status}`}</small>
    case 'file_read':
    case 'file_write':
      return (
        <small>
          {event.type === 'file_read' ? 'Read' : 'Wrote'} <code>{event.path}</code>
        </small>
      )
    case 'plan':
      return <small>Plan with {event.items.length} items</small>
    case 'error':
      return <p className="notice failed">{event.message}</p>
    case 'session_start':
    case 'session_end':
      return (
        <small>
          {event.type === 'session_start' ? 'The session begins' : 'The session ends'},{' '}
          {new Date(event.timestamp).toLocaleString()}.
        </small>
      )
    default:
      event satisfies never
      return null
  }
}

function outputText(output: unknown): string {
  const text = typeof output === 'string' ? output : JSON.stringify(output, null, 2)
  return text.length > maxOutput ? `${text.slice(0, maxOutput)}…` : text
}

function Controls({
  playback,
  speed,
  onSpeed,
}: {
  playback: Playback
  speed: number
  onSpeed: (speed: number) => void
}): ReactNode {
  const { events, position, isPlaying, seek, setPlaying } = playback
  const isAtEnd = position >= events.length
  const toggle = (): void => {
    if (!isPlaying && isAtEnd) seek(0)
    setPlaying(!isPlaying)
  }
  return (
    <div className="player-controls" role="group" aria-label="Playback">
      <Timeline events={events} />
      <input
        type="range"
        aria-label="Position"
        aria-valuetext={`Event ${position} of ${events.length}`}
        min={0}
        max={events.length}
        value={position}
        onChange={(event) => {
          setPlaying(false)
          seek(Number(event.target.value))
        }}
      />
      <div className="player-buttons">
        <button className="quiet" disabled={position === 0} aria-label="Step back" onClick={() => seek(position - 1)}>
          ◀︎❙
        </button>
        <button onClick={toggle} disabled={events.length === 0}>
          {isPlaying ? 'Pause' : 'Play'}
        </button>
        <button className="quiet" disabled={isAtEnd} aria-label="Step forward" onClick={() => seek(position + 1)}>
          ❙▶︎
        </button>
        <label className="speed">
          <span>Speed</span>
          <select value={speed} onChange={(event) => onSpeed(Number(event.target.value))}>
            {speeds.map((each) => (
              <option key={each.name} value={each.speed}>
                {each.name}
              </option>
            ))}
          </select>
        </label>
        <span className="place">
          {position} / {events.length} · {timeOf(events, position)}
        </span>
      </div>
    </div>
  )
}

/** Prompts, permission requests and errors on the timeline. */
function Timeline({ events }: { events: readonly PlaybackEvent[] }): ReactNode {
  const marks = events.flatMap(({ type }, index) =>
    type === 'user_prompt' || type === 'permission' || type === 'error' ? [{ type, index }] : [],
  )
  return (
    <svg className="timeline" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
      {marks.map(({ type, index }) => (
        <rect key={index} className={type} x={(index / Math.max(1, events.length)) * 996} width="4" height="10" />
      ))}
    </svg>
  )
}

/** Since the beginning. */
function timeOf(events: readonly PlaybackEvent[], position: number): string {
  const [first, now] = [events[0], events[Math.max(0, position - 1)]]
  if (!first || !now) return '0 s'
  return elapsedText(Math.max(0, Date.parse(now.timestamp) - Date.parse(first.timestamp)))
}
