import { useEffect, useState, type ReactNode } from 'react'
import { sentenceOf } from '../server.ts'

/** What an action did, and how to take it back. */
export interface Done {
  text: string
  isProblem?: boolean
  undo?: () => Promise<unknown>
}

export function DoneNotice({ done, onClose }: { done: Done | undefined; onClose: () => void }): ReactNode {
  const [problem, setProblem] = useState<string>()
  useEffect(() => setProblem(undefined), [done])
  const undo = done?.undo
  return (
    <div role="status" className="list-done">
      {done && (
        <div className={done.isProblem || problem !== undefined ? 'notice failed' : 'notice good'}>
          <span>{problem ?? done.text}</span>
          <span className="notice-buttons">
            {undo && (
              <button
                className="quiet small"
                onClick={() => void undo().then(onClose, (error: unknown) => setProblem(sentenceOf(error)))}
              >
                Undo
              </button>
            )}
            <button className="quiet small" onClick={onClose}>
              Dismiss
            </button>
          </span>
        </div>
      )}
    </div>
  )
}
