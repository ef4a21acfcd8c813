import { useEffect, useRef, type ReactNode } from 'react'

interface ScreenProps {
  title: string
  /** Where the back control leads. */
  back: { href: string; name: string }
  /** Controls beside the title. */
  tools?: ReactNode
  children: ReactNode
}

/** The frame of every screen but the session. */
export function Screen({ title, back, tools, children }: ScreenProps): ReactNode {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // The link that led here may be gone, and focus with it.
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true })
  }, [])
  return (
    <main className={back.href === '#/' ? 'main screen' : 'main screen screen-of-session'}>
      <header className="session-head">
        <a className="back" href={back.href} aria-label={back.name}>
          ←
        </a>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {tools}
      </header>
      <div className="screen-body">{children}</div>
    </main>
  )
}

/** What a screen shows until its data is there, or instead of it. */
export function LoadState({ problem, onRetry }: { problem: string | undefined; onRetry: () => void }): ReactNode {
  if (problem === undefined)
    return (
      <p className="faint padded" role="status">
        Loading…
      </p>
    )
  return (
    <p className="notice failed" role="alert">
      <span>{problem}</span>
      <button className="quiet small" onClick={onRetry}>
        Try again
      </button>
    </p>
  )
}
