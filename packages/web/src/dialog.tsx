import { useEffect, useId, useRef, type ReactNode } from 'react'
import './dialog.css'

interface DialogProps {
  title: string
  onClose: () => void
  children: ReactNode
}

/** A modal dialog. The close button is at the top and has the focus first, so that a long dialog opens at its top. */
export function Dialog({ title, onClose, children }: DialogProps): ReactNode {
  const place = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => place.current?.showModal(), [])
  return (
    <dialog ref={place} className="dialog" aria-labelledby={titleId} onClose={onClose}>
      <form method="dialog" className="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <button className="quiet small" autoFocus>
          Close
        </button>
      </form>
      {children}
    </dialog>
  )
}
