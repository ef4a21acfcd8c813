import type { SessionHandle, StateValues } from '@tapetree/client'

/** The transcript has the full text from the log; if the log is only partly loaded, asks the server. */
export function queueOf(handle: SessionHandle): StateValues['queue'] {
  const { waiting, hold } = handle.transcript
  const told = handle.state('queue')
  if (waiting.length === 0 && told) return told
  return {
    queueLength: waiting.filter(({ delivery }) => delivery === 'follow-up').length,
    total: waiting.length,
    hold,
    messages: [...waiting],
  }
}
