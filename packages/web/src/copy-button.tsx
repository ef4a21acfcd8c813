import { useEffect, useState, type ReactNode } from 'react'

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }): ReactNode {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  useEffect(() => {
    if (state === 'ready') return undefined
    const timer = setTimeout(() => setState('ready'), 2000)
    return () => clearTimeout(timer)
  }, [state])
  const copy = async (): Promise<void> => {
    try {
      // Browsers offer the clipboard only to pages with HTTPS or on this machine.
      await navigator.clipboard.writeText(text)
      setState('copied')
    } catch {
      setState('failed')
    }
  }
  return (
    <button type="button" className="quiet tiny" onClick={() => void copy()}>
      {state === 'ready' ? label : state === 'copied' ? 'Copied' : 'Cannot copy here'}
    </button>
  )
}
