import type { Excuse } from '../requirement.ts'

const declaration = 'A Go declaration without a value.'
const divider = 'A divider.'

/** What the document says without stating behaviour, and why it does not. */
export const noBehaviour: Excuse[] = [
  {
    text: 'This document outlines the design for `AgentSession`, an orchestration layer that sits above the `SessionManager`.',
    reason: 'It says what the document is.',
  },
  { text: 'package session', reason: declaration },
  { text: 'import (', reason: declaration },
  { text: '"context"', reason: declaration },
  { text: '"time"', reason: declaration },
  { text: 'const (', reason: declaration },
  { text: '// --- Prompting ---', reason: divider },
  { text: '// --- Model & Thinking ---', reason: divider },
  { text: '// --- Compaction & History ---', reason: divider },
  { text: '// --- State & Metadata ---', reason: divider },
  { text: 'package main', reason: declaration },
  { text: '"fmt"', reason: declaration },
  { text: '"log"', reason: declaration },
  { text: '"session" // hypothetical package', reason: declaration },
  { text: '"agent"   // hypothetical package', reason: declaration },
  { text: 'func main() {', reason: declaration },
  { text: 'ctx := context.Background()', reason: 'Go hands a context around; here who waits takes a signal.' },
]
