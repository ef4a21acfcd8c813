import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { Player, type PlaybackEvent } from '@tapetree/session/view'
import { useEffect, useMemo, useRef, useState } from 'react'
import { rest, sentenceOf } from '../server.ts'

export interface Playback {
  events: readonly PlaybackEvent[]
  /** Number of events that are shown. */
  position: number
  isPlaying: boolean
  isLoaded: boolean
  /** The log is longer than what was loaded. */
  isCut: boolean
  problem: string | undefined
  seek: (position: number) => void
  setPlaying: (isPlaying: boolean) => void
}

const pageSize = 1000
/** Enough for days of work, and little enough for a phone. */
const maxLines = 50_000
/** A running session is asked for new lines; an answer comes at once when there are some. */
const waitSeconds = 25

/** Loads the recording, follows it while the session runs, and plays it at its recorded pace. */
export function usePlayback(sessionId: string, speed: number): Playback {
  const { lines, isLoaded, isCut, problem } = useLines(sessionId)
  const player = useMemo(() => new Player(lines), [lines])
  const events = useMemo(() => player.events(), [player])
  const [position, setPosition] = useState(0)
  const [isPlaying, setPlaying] = useState(false)
  const now = useRef(position)
  now.current = position
  // At the end, new events of a running session are shown as they come.
  const knownLength = useRef(0)
  useEffect(() => {
    if (knownLength.current > 0 && now.current >= knownLength.current) setPosition(player.length)
    knownLength.current = player.length
  }, [player])
  useEffect(() => {
    if (!isPlaying) return undefined
    const leaving = new AbortController()
    const play = async (): Promise<void> => {
      player.seek({ index: now.current })
      for await (const _ of player.play({ speed, maxGapMs: 2000, signal: leaving.signal })) {
        setPosition(player.position)
        // Without pauses the page would show nothing until the end.
        if (speed === Infinity) await new Promise(requestAnimationFrame)
      }
      setPlaying(false)
    }
    play().catch(() => undefined)
    return () => leaving.abort()
  }, [isPlaying, player, speed])
  const seek = (to: number): void => {
    const next = Math.min(Math.max(0, to), player.length)
    player.seek({ index: next })
    setPosition(next)
  }
  return { events, position, isPlaying, isLoaded, isCut, problem, seek, setPlaying }
}

function useLines(sessionId: string): { lines: readonly Line[]; isLoaded: boolean; isCut: boolean; problem?: string } {
  const [state, setState] = useState<{ lines: readonly Line[]; isLoaded: boolean; isCut: boolean; problem?: string }>({
    lines: [],
    isLoaded: false,
    isCut: false,
  })
  useEffect(() => {
    const leaving = new AbortController()
    const { signal } = leaving
    const follow = async (): Promise<void> => {
      const lines: Line[] = []
      let after = 0
      while (!signal.aborted) {
        const isFirst = lines.length === 0
        const page = await rest.events(
          sessionId,
          { after, limit: pageSize, ...(!isFirst && { wait: waitSeconds }) },
          signal,
        )
        lines.push(...page.events.map((event) => fromDisk(event as unknown as DiskLine, event.seq)))
        after = lines.at(-1)?.seq ?? 0
        const isCut = lines.length >= maxLines
        const isLoaded = isCut || after >= page.head.seq
        if (page.events.length > 0 && isLoaded) setState({ lines: [...lines], isLoaded, isCut })
        if (isCut || (isFirst && page.events.length === 0)) return
      }
    }
    follow().catch((error: unknown) => {
      if (!signal.aborted) setState((before) => ({ ...before, problem: sentenceOf(error) }))
    })
    return () => leaving.abort()
  }, [sessionId])
  return state
}
