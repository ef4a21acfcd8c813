import { RemoteSessions, type ConnectionStatus, type SessionSummary } from '@tapetree/client'
import { useEffect, useState } from 'react'
import { baseUrl } from '../server.ts'

export interface ListedSessions {
  sessions: readonly SessionSummary[]
  status: ConnectionStatus
  hasMore: boolean
  loadMore: () => Promise<void>
}

/** The list of sessions while the calling component is mounted. */
export function useSessions(): ListedSessions {
  const [listed, setListed] = useState<ListedSessions>(nothing)
  useEffect(() => {
    const remote = RemoteSessions.open({ baseUrl, limit: 50 })
    const show = (): void => {
      const { sessions, status, hasMore } = remote
      setListed({ sessions, status, hasMore, loadMore: () => remote.loadMore() })
    }
    const stop = remote.subscribe(show)
    return () => {
      stop()
      void remote.close()
    }
  }, [])
  return listed
}

const nothing: ListedSessions = {
  sessions: [],
  status: { type: 'connecting' },
  hasMore: false,
  loadMore: () => Promise.resolve(),
}
