import { sideBySide, spellInvisible, type DiffFile, type DiffHunk, type DiffLine } from '@tapetree/session/screen'
import { useState, useSyncExternalStore, type ReactNode } from 'react'
import { storage } from '../server.ts'
import './diff.css'

/** Longer diffs are cut until the user asks for all of it. */
const shownLines = 200

/** A diff with line numbers and marked words. On a wide screen the user chooses whether both sides stand beside each other. */
export function Diff({ files }: { files: readonly DiffFile[] }): ReactNode {
  const [isWhole, setWhole] = useState(false)
  const isWide = useSyncExternalStore(onWidth, () => wide.matches)
  const isSplit = useSyncExternalStore(onChoice, () => chosenSplit) && isWide
  const total = files.reduce((sum, { hunks }) => sum + hunks.reduce((count, { lines }) => count + lines.length, 0), 0)
  let left = isWhole ? Infinity : shownLines
  return (
    <div className="diff" tabIndex={0} role="group" aria-label="Diff">
      {isWide && (
        <button className="quiet tiny diff-choice" aria-pressed={isSplit} onClick={() => chooseSplit(!isSplit)}>
          Side by side
        </button>
      )}
      {files.map(({ newName, oldName, hunks, notes }, index) => (
        <div key={index}>
          {files.length > 1 && <p className="diff-name">{spellInvisible(newName ?? oldName ?? '')}</p>}
          {hunks.map((hunk, place) => {
            const lines = hunk.lines.slice(0, Math.max(0, left))
            left -= lines.length
            return (
              lines.length > 0 &&
              (isSplit ? (
                <SplitHunk key={place} hunk={hunk} lines={lines} />
              ) : (
                <Hunk key={place} hunk={hunk} lines={lines} />
              ))
            )
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
      {hunk.section !== '' && <caption>{spellInvisible(hunk.section)}</caption>}
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

function SplitHunk({ hunk, lines }: { hunk: DiffHunk; lines: readonly DiffLine[] }): ReactNode {
  return (
    <table className="split">
      {hunk.section !== '' && <caption>{spellInvisible(hunk.section)}</caption>}
      <tbody>
        {sideBySide(lines).map(({ left, right }, index) => (
          <tr key={index}>
            <td className="number">{left?.oldLine}</td>
            <td className={`text ${left ? left.type : 'empty'}`}>{left && markedText(left)}</td>
            <td className="number">{right?.newLine}</td>
            <td className={`text ${right ? right.type : 'empty'}`}>{right && markedText(right)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const wide = matchMedia('(min-width: 75rem)')

function onWidth(listener: () => void): () => void {
  wide.addEventListener('change', listener)
  return () => wide.removeEventListener('change', listener)
}

/** One choice for all diffs, kept in this browser. */
let chosenSplit = storage(() => localStorage.getItem('tapetree-diff')) === 'split'
const choosing = new Set<() => void>()

function onChoice(listener: () => void): () => void {
  choosing.add(listener)
  return () => void choosing.delete(listener)
}

function chooseSplit(isSplit: boolean): void {
  chosenSplit = isSplit
  storage(() => localStorage.setItem('tapetree-diff', isSplit ? 'split' : 'unified'))
  for (const listener of choosing) listener()
}

/** Invisible letters and those that change the order of others are spelled out. */
function markedText({ text, marks = [], isUnterminated }: DiffLine): ReactNode {
  const parts: ReactNode[] = []
  let end = 0
  for (const mark of marks) {
    const marked = spellInvisible(text.slice(mark.start, mark.end))
    parts.push(spellInvisible(text.slice(end, mark.start)), <mark key={mark.start}>{marked}</mark>)
    end = mark.end
  }
  return (
    <>
      {parts}
      {spellInvisible(text.slice(end))}
      {isUnterminated && <span className="faint"> (no line break at the end)</span>}
    </>
  )
}
