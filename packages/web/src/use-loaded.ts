import { useCallback, useEffect, useState } from 'react'
import { sentenceOf } from './server.ts'

export interface Loaded<T> {
  /** Kept while it is loaded again. */
  value: T | undefined
  /** A sentence; absent if the last load succeeded. */
  problem: string | undefined
  isLoading: boolean
  reload: () => void
}

/** Loads when the component appears, when `load` changes and on `reload`. Wrap `load` in `useCallback`. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'>>({
    value: undefined,
    problem: undefined,
    isLoading: true,
  })
  const [times, setTimes] = useState(0)
  useEffect(() => {
    const leaving = new AbortController()
    const { signal } = leaving
    setState((before) => ({ ...before, isLoading: true }))
    load(signal).then(
      (value) => !signal.aborted && setState({ value, problem: undefined, isLoading: false }),
      (error: unknown) =>
        !signal.aborted && setState((before) => ({ ...before, problem: sentenceOf(error), isLoading: false })),
    )
    return () => leaving.abort()
  }, [load, times])
  const reload = useCallback(() => setTimes((before) => before + 1), [])
  return { ...state, reload }
}
