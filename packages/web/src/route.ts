import { useSyncExternalStore } from 'react'

/** The place in the app is in the fragment, so that the app works below any path and the server never sees it. */
export type Route = { type: 'list' } | { type: 'session'; id: string } | { type: 'pair'; code: string }

export function routeOf(fragment: string): Route {
  const code = new URLSearchParams(fragment.replace(/^#/, '')).get('pair')
  if (code !== null && code !== '') return { type: 'pair', code }
  const [, id] = /^#\/sessions\/([A-Za-z0-9_-]{1,64})$/.exec(fragment) ?? []
  return id === undefined ? { type: 'list' } : { type: 'session', id }
}

export function sessionLink(id: string): string {
  return `#/sessions/${id}`
}

export function useRoute(): Route {
  const fragment = useSyncExternalStore(onFragment, () => location.hash)
  return routeOf(fragment)
}

/** Removes the pairing code from the address and the history. */
export function leavePairing(): void {
  history.replaceState(null, '', location.pathname + location.search)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

function onFragment(listener: () => void): () => void {
  addEventListener('hashchange', listener)
  return () => removeEventListener('hashchange', listener)
}
