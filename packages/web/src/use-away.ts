import type { ConnectionStatus } from '@tapetree/client'
import { useEffect, useRef, useState } from 'react'

export interface Away {
  /** Whether it was connected before, and is not now. */
  isLost: boolean
  /** How long it was away, for a moment after it is back. */
  awaySeconds: number | undefined
}

/** How long it shows that it was away. */
const shownMs = 5000

/** Whether a connection is lost, and for a moment that it was. */
export function useAway(status: ConnectionStatus): Away {
  const lostAt = useRef<number | undefined>(undefined)
  const wasAttached = useRef(false)
  const [awaySeconds, setAwaySeconds] = useState<number>()
  useEffect(() => {
    if (status.type === 'attached') {
      if (lostAt.current !== undefined) setAwaySeconds(Math.round((Date.now() - lostAt.current) / 1000))
      lostAt.current = undefined
      wasAttached.current = true
    } else if (wasAttached.current) lostAt.current ??= Date.now()
  }, [status.type])
  useEffect(() => {
    if (awaySeconds === undefined) return undefined
    const timer = setTimeout(() => setAwaySeconds(undefined), shownMs)
    return () => clearTimeout(timer)
  }, [awaySeconds])
  return { isLost: wasAttached.current && status.type !== 'attached', awaySeconds }
}
