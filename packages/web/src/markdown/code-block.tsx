import type { CodePiece } from '@tapetree/session/screen'
import { useEffect, useState, type ReactNode } from 'react'
import { CopyButton } from '../copy-button.tsx'
import { highlight } from './highlight.ts'

/** Code with a button that copies it. Text that still grows is not colored. */
export function CodeBlock({
  code,
  language,
  isGrowing,
}: {
  code: string
  language: string
  isGrowing: boolean
}): ReactNode {
  const [colored, setColored] = useState<{ code: string; pieces: CodePiece[] }>()
  useEffect(() => {
    if (isGrowing || language === '') return undefined
    let isCurrent = true
    void highlight(code, language).then((pieces) => {
      if (isCurrent && pieces) setColored({ code, pieces })
    })
    return () => void (isCurrent = false)
  }, [code, language, isGrowing])
  const pieces = colored?.code === code ? colored.pieces : [{ text: code }]
  return (
    <div className="code-block">
      <div className="code-head">
        <span>{language}</span>
        <CopyButton text={code} />
      </div>
      <pre tabIndex={0}>
        <code>
          {pieces.map(({ text, scope }: CodePiece, index) =>
            scope === undefined ? (
              text
            ) : (
              <span key={index} className={`hl-${scope}`}>
                {text}
              </span>
            ),
          )}
        </code>
      </pre>
    </div>
  )
}
