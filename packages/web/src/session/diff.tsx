import type { DiffFile, DiffHunk, DiffLine } from '@tapetree/session/screen'
import { useState, type ReactNode } from 'react'
import './diff.css'

/** Longer diffs are cut until the user asks for all of it. */
const shownLines = 200

/** A unified diff with line numbers and marked words. */
export function Diff({ files }: { files: readonly DiffFile[] }): ReactNode {
  const [isWhole, setWhole] = useState(false)
  const total = files.reduce((sum, { hunks }) => sum + hunks.reduce((count, { lines }) => count + lines.length, 0), 0)
  let left = isWhole ? Infinity : shownLines
  return (
    <div className="diff" tabIndex={0} role="region" aria-label="Diff">
      {files.map(({ newName, oldName, hunks, notes }, index) => (
        <div key={index}>
          {files.length > 1 && <p className="diff-name">{newName ?? oldName}</p>}
          {hunks.map((hunk, place) => {
            const lines = hunk.lines.slice(0, Math.max(0, left))
            left -= lines.length
            return lines.length > 0 && <Hunk key={place} hunk={hunk} lines={lines} />
          })}
          {notes.map((note, place) => (
            <p key={place} className="faint">
              {note}
            </p>
          ))}
        </div>
      ))}
      {total > shownLines && !isWhole && (
        <button className="quiet tiny" onClick={() => setWhole(true)}>
          Show all {total} lines
        </button>
      )}
    </div>
  )
}

function Hunk({ hunk, lines }: { hunk: DiffHunk; lines: readonly DiffLine[] }): ReactNode {
  const hasNumbers = lines.some(({ oldLine, newLine }) => oldLine !== undefined || newLine !== undefined)
  return (
    <table>
      {hunk.section !== '' && <caption>{hunk.section}</caption>}
      <tbody>
        {lines.map((line, index) => (
          <tr key={index} className={line.type}>
            {hasNumbers && <td className="number">{line.oldLine}</td>}
            {hasNumbers && <td className="number">{line.newLine}</td>}
            <td className="sign-cell">{{ added: '+', removed: '−', context: ' ' }[line.type]}</td>
            <td className="text">{markedText(line)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function markedText({ text, marks = [], isUnterminated }: DiffLine): ReactNode {
  const parts: ReactNode[] = []
  let end = 0
  for (const mark of marks) {
    parts.push(text.slice(end, mark.start), <mark key={mark.start}>{text.slice(mark.start, mark.end)}</mark>)
    end = mark.end
  }
  return (
    <>
      {parts}
      {text.slice(end)}
      {isUnterminated && <span className="faint"> (no line break at the end)</span>}
    </>
  )
}
