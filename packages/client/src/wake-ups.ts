/** Calls `wake` when the machine or the page resumes; returns a function that stops it. */
export type WakeUps = (wake: () => void) => () => void

interface Events {
  addEventListener?: (type: string, listener: () => void) => void
  removeEventListener?: (type: string, listener: () => void) => void
}

/** Uses browser events; does nothing elsewhere. */
export const browserWakeUps: WakeUps = (wake) => {
  const page = globalThis as Events & { document?: Events & { visibilityState?: string } }
  const shown = (): void => {
    if (page.document?.visibilityState === 'visible') wake()
  }
  const names = ['online', 'pageshow', 'focus']
  for (const name of names) page.addEventListener?.(name, wake)
  page.document?.addEventListener?.('visibilitychange', shown)
  return () => {
    for (const name of names) page.removeEventListener?.(name, wake)
    page.document?.removeEventListener?.('visibilitychange', shown)
  }
}
