import type { Requirement } from '../requirement.ts'

/** Sections 1 to 5: goals, storage format and data models. */
export const format = [
  {
    id: 'session-manager/1 history-manager',
    quote:
      'The goal is to provide a robust, concurrent-safe, append-only conversation history manager that supports branching (tree structure) and context compaction.',
  },
  {
    id: 'session-manager/2 append-only-storage',
    quote: '**Append-Only Storage**: Use JSONL for crash resilience and simple history tracking.',
  },
  {
    id: 'session-manager/2 tree-structure',
    quote:
      '**Tree Structure**: Support infinite branching without duplicating file content using `id` and `parent_id` pointers.',
  },
  {
    id: 'session-manager/2 context-compaction',
    quote:
      '**Context Compaction**: Efficiently handle long conversations by summarizing older context and maintaining a pointer to the first kept message.',
  },
  {
    id: 'session-manager/2 checkpointing',
    quote: '**Checkpointing**: Capture context from abandoned paths when branching using summaries.',
  },
  {
    id: 'session-manager/2 concurrency',
    quote: '**Concurrency**: Thread-safe operations for high-performance concurrent agents.',
    settled:
      'DESIGN 1.4: any number of callers in one process append at once and each is answered when its line is durable; processes exclude each other by a kernel lock.',
  },
  {
    id: 'session-manager/2 strict-typing',
    quote: "**Strict Typing**: Leverage Go's type system for entry schemas.",
    settled: 'The type system is that of TypeScript: an entry is a union with a `type` tag.',
  },
  {
    id: 'session-manager/2 no-legacy-formats',
    quote: '**Backwards Compatibility**: No support for legacy `pi-mono` formats (v1/v2 transformations).',
    settled:
      'DESIGN 1.1: the flat payloads of section 13, `thinking_level_change` and role `toolResult` are read; nothing else of older formats is transformed.',
  },
  {
    id: 'session-manager/2 no-ui',
    quote: '**UI Concerns**: TUI formatting logic is out of scope; this is a data layer.',
  },
  {
    id: 'session-manager/3 jsonl',
    quote: 'We will adhere to the **JSONL (JSON Lines)** format.',
  },
  {
    id: 'session-manager/3 one-line-one-event',
    quote: 'Each line represents an event in the session.',
  },
  {
    id: 'session-manager/3 header-first',
    quote: '**Header (Line 1)**: Session metadata.',
  },
  {
    id: 'session-manager/3 body-ordered',
    quote: '**Body (Line 2+)**: Ordered sequence of events.',
  },
  {
    id: 'session-manager/3 base-structure',
    quote:
      'All entries (except Header) share a common base structure.\n{\n  "type": "message|compaction|branch_summary|...",\n  "id": "uuid-v4",\n  "parent_id": "parent-uuid" | null,\n  "timestamp": "2024-01-01T12:00:00Z"\n}',
    settled:
      'DESIGN 1.1: ids are UUIDs of version 7, so that they sort; a line also has `seq` first and `crc` last. DESIGN 1.2: records about running have no `parent_id`.',
  },
  {
    id: 'session-manager/4.1 entry-type',
    quote: '// EntryType defines the kind of session entry\ntype EntryType string',
    settled: 'DESIGN 1.2: `system` and the records about running are added to these types.',
  },
  {
    id: 'session-manager/4.1 type-session',
    quote: 'TypeSession       EntryType = "session"',
  },
  {
    id: 'session-manager/4.1 type-message',
    quote: 'TypeMessage       EntryType = "message"',
  },
  {
    id: 'session-manager/4.1 type-model-change',
    quote: 'TypeModelChange   EntryType = "model_change"',
  },
  {
    id: 'session-manager/4.1 type-thinking-level',
    quote: 'TypeThinkingLevel EntryType = "thinking_level"',
    settled: 'DESIGN 1.1: `thinking_level_change` is read as `thinking_level`.',
  },
  {
    id: 'session-manager/4.1 type-label',
    quote: 'TypeLabel         EntryType = "label"',
  },
  {
    id: 'session-manager/4.1 type-session-info',
    quote: 'TypeSessionInfo   EntryType = "session_info"',
  },
  {
    id: 'session-manager/4.1 type-compaction',
    quote: 'TypeCompaction    EntryType = "compaction"',
  },
  {
    id: 'session-manager/4.1 type-branch-summary',
    quote: 'TypeBranchSummary EntryType = "branch_summary"',
  },
  {
    id: 'session-manager/4.1 type-custom',
    quote: 'TypeCustom        EntryType = "custom"',
  },
  {
    id: 'session-manager/4.1 message-role',
    quote: '// MessageRole defines the role of a message in the conversation.\ntype MessageRole string',
  },
  {
    id: 'session-manager/4.1 role-user',
    quote: 'RoleUser              MessageRole = "user"',
  },
  {
    id: 'session-manager/4.1 role-assistant',
    quote: 'RoleAssistant         MessageRole = "assistant"',
  },
  {
    id: 'session-manager/4.1 role-tool',
    quote: 'RoleTool              MessageRole = "tool"               // For tool results',
    settled: 'DESIGN 1.1: role `toolResult` is read as `tool`.',
  },
  {
    id: 'session-manager/4.1 role-bash-execution',
    quote: 'RoleBashExecution     MessageRole = "bashExecution"     // Command execution event',
    settled: 'DESIGN 1.2: with a payload `bash_execution`; `exclude_from_context` is honoured.',
  },
  {
    id: 'session-manager/4.1 role-custom',
    quote: 'RoleCustom            MessageRole = "custom"            // Extension-injected data',
    settled: 'DESIGN 2: a `message` with role `custom` is sent, an entry of type `custom` is not.',
  },
  {
    id: 'session-manager/4.1 role-branch-summary',
    quote: 'RoleBranchSummary     MessageRole = "branchSummary"     // Checkpoint for abandoned branch',
  },
  {
    id: 'session-manager/4.1 role-compaction-summary',
    quote: 'RoleCompactionSummary MessageRole = "compactionSummary" // Summary of discarded history',
  },
  {
    id: 'session-manager/4.1 header',
    quote: '// Header is the first line of the file (metadata)\ntype Header struct {',
  },
  {
    id: 'session-manager/4.1 header-type',
    quote: 'Type          EntryType `json:"type"` // Always "session"',
  },
  {
    id: 'session-manager/4.1 header-id',
    quote: 'ID            string    `json:"id"`',
  },
  {
    id: 'session-manager/4.1 header-version',
    quote: 'Version       int       `json:"version"`',
  },
  {
    id: 'session-manager/4.1 header-parent-session',
    quote: 'ParentSession string    `json:"parent_session,omitempty"`',
    settled: 'DESIGN 6: a copy also names the entry it was taken at, `parent_entry`.',
  },
  {
    id: 'session-manager/4.1 header-timestamp',
    quote: 'CreatedAt     time.Time `json:"timestamp"`',
  },
  {
    id: 'session-manager/4.1 entry-tagged-union',
    quote: '// Entry is a "Tagged Union" that represents any record in the session log.\ntype Entry struct {',
    settled: 'In TypeScript a union with a `type` tag; the reader keeps lines of unknown types as they are.',
  },
  {
    id: 'session-manager/4.1 entry-type-member',
    quote: 'Type      EntryType `json:"type"`',
  },
  {
    id: 'session-manager/4.1 entry-id',
    quote: 'ID        string    `json:"id"`',
    settled: 'DESIGN 7: UUID version 7, opaque to readers.',
  },
  {
    id: 'session-manager/4.1 entry-parent-id',
    quote: 'ParentID  *string   `json:"parent_id"` // Pointer to allow null for root',
  },
  {
    id: 'session-manager/4.1 entry-timestamp',
    quote: 'Timestamp time.Time `json:"timestamp"`',
  },
  {
    id: 'session-manager/4.1 one-payload',
    quote: '// Payload pointers - only one will be non-nil',
  },
  {
    id: 'session-manager/4.1 payload-message',
    quote: 'Message       *MessageEntry       `json:"message,omitempty"`',
  },
  {
    id: 'session-manager/4.1 payload-model-change',
    quote: 'ModelChange   *ModelChangeEntry   `json:"model_change,omitempty"`',
  },
  {
    id: 'session-manager/4.1 payload-thinking-level',
    quote: 'ThinkingLevel *ThinkingLevelEntry `json:"thinking_level,omitempty"`',
  },
  {
    id: 'session-manager/4.1 payload-label',
    quote: 'Label         *LabelEntry         `json:"label,omitempty"`',
  },
  {
    id: 'session-manager/4.1 payload-session-info',
    quote: 'SessionInfo   *SessionInfoEntry   `json:"session_info,omitempty"`',
  },
  {
    id: 'session-manager/4.1 payload-compaction',
    quote: 'Compaction    *CompactionEntry    `json:"compaction,omitempty"`',
  },
  {
    id: 'session-manager/4.1 payload-branch-summary',
    quote: 'BranchSummary *BranchSummaryEntry `json:"branch_summary,omitempty"`',
  },
  {
    id: 'session-manager/4.1 payload-custom',
    quote: 'Custom        *CustomEntry        `json:"custom,omitempty"`',
  },
  {
    id: 'session-manager/4.2 message-role',
    quote: 'type MessageEntry struct {\nRole    string    `json:"role"`',
  },
  {
    id: 'session-manager/4.2 message-content',
    quote: 'Content []Content `json:"content"`',
  },
  {
    id: 'session-manager/4.2 message-model',
    quote: 'Model   string    `json:"model,omitempty"`',
  },
  {
    id: 'session-manager/4.2 model-change-provider',
    quote: 'type ModelChangeEntry struct {\nProvider string `json:"provider"`',
  },
  {
    id: 'session-manager/4.2 model-change-model-id',
    quote: 'ModelID  string `json:"model_id"`',
  },
  {
    id: 'session-manager/4.2 thinking-level',
    quote:
      'type ThinkingLevelEntry struct {\nThinkingLevel string `json:"thinking_level"` // e.g. "high", "low", "off"',
  },
  {
    id: 'session-manager/4.2 label-target-id',
    quote: 'type LabelEntry struct {\nTargetID string `json:"target_id"`',
  },
  {
    id: 'session-manager/4.2 label-label',
    quote: 'Label    string `json:"label,omitempty"` // empty/null to remove',
  },
  {
    id: 'session-manager/4.2 session-info-name',
    quote: 'type SessionInfoEntry struct {\nName string `json:"name"`',
  },
  {
    id: 'session-manager/4.2 compaction-summary',
    quote: 'type CompactionEntry struct {\nSummary          string `json:"summary"`',
  },
  {
    id: 'session-manager/4.2 compaction-first-kept-entry-id',
    quote: 'FirstKeptEntryID string `json:"first_kept_entry_id"`',
  },
  {
    id: 'session-manager/4.2 compaction-tokens-before',
    quote: 'TokensBefore     int    `json:"tokens_before"`',
  },
  {
    id: 'session-manager/4.2 branch-summary-summary',
    quote: 'type BranchSummaryEntry struct {\nSummary string `json:"summary"`',
  },
  {
    id: 'session-manager/4.2 branch-summary-from-id',
    quote: 'FromID  string `json:"from_id"`',
    settled: 'DESIGN 7: the abandoned leaf; null where nothing had been said.',
  },
  {
    id: 'session-manager/4.2 custom-type',
    quote: 'type CustomEntry struct {\nCustomType string         `json:"custom_type"`',
  },
  {
    id: 'session-manager/4.2 custom-data',
    quote: 'Data       map[string]any `json:"data"`',
  },
  {
    id: 'session-manager/4.3 content-type',
    quote: 'type ContentType string',
    settled: 'DESIGN 1.2: a content type `reasoning` is added.',
  },
  {
    id: 'session-manager/4.3 type-text',
    quote: 'ContentTypeText       ContentType = "text"',
  },
  {
    id: 'session-manager/4.3 type-image',
    quote: 'ContentTypeImage      ContentType = "image"',
  },
  {
    id: 'session-manager/4.3 type-tool-use',
    quote: 'ContentTypeToolUse    ContentType = "tool_use"',
  },
  {
    id: 'session-manager/4.3 type-tool-result',
    quote: 'ContentTypeToolResult ContentType = "tool_result"',
  },
  {
    id: 'session-manager/4.3 content-tag',
    quote: 'type Content struct {\nType ContentType `json:"type"`',
  },
  {
    id: 'session-manager/4.3 one-part',
    quote: '// Only one of these will be non-nil',
  },
  {
    id: 'session-manager/4.3 part-text',
    quote: 'Text       *TextContent       `json:"text,omitempty"`',
  },
  {
    id: 'session-manager/4.3 part-image',
    quote: 'Image      *ImageContent      `json:"image,omitempty"`',
  },
  {
    id: 'session-manager/4.3 part-tool-use',
    quote: 'ToolUse    *ToolUseContent    `json:"tool_use,omitempty"`',
  },
  {
    id: 'session-manager/4.3 part-tool-result',
    quote: 'ToolResult *ToolResultContent `json:"tool_result,omitempty"`',
  },
  {
    id: 'session-manager/4.3 text-content',
    quote: 'type TextContent struct {\nContent string `json:"content"`',
  },
  {
    id: 'session-manager/4.3 image-source',
    quote: 'type ImageContent struct {\nSource *ImageSource `json:"source"`',
  },
  {
    id: 'session-manager/4.3 image-source-type',
    quote: 'type ImageSource struct {\nType      string `json:"type"` // "base64" or "url"',
    settled: 'DESIGN 1.2: `blob` (sha256, size) is added.',
  },
  {
    id: 'session-manager/4.3 image-media-type',
    quote: 'MediaType string `json:"media_type"`',
  },
  {
    id: 'session-manager/4.3 image-data',
    quote: 'Data      string `json:"data"`',
  },
  {
    id: 'session-manager/4.3 tool-use-id',
    quote: 'type ToolUseContent struct {\nID    string         `json:"id"`',
  },
  {
    id: 'session-manager/4.3 tool-use-name',
    quote: 'Name  string         `json:"name"`',
  },
  {
    id: 'session-manager/4.3 tool-use-input',
    quote: 'Input map[string]any `json:"input"`',
  },
  {
    id: 'session-manager/4.3 tool-result-tool-use-id',
    quote: 'type ToolResultContent struct {\nToolUseID string `json:"tool_use_id"`',
  },
  {
    id: 'session-manager/4.3 tool-result-is-error',
    quote: 'IsError   bool   `json:"is_error"`',
    settled: 'It may be left out, as in section 12.2; then the call did not fail.',
  },
  {
    id: 'session-manager/4.3 tool-result-content',
    quote: 'Content   string `json:"content"`',
    settled: 'DESIGN 1.2: a string or blocks.',
  },
  {
    id: 'session-manager/5.1 file-as-text',
    quote:
      'Files are typically handled in one of two ways:\n**Text Context**: The *contents* of the file are embedded in a `TextContent` with formatting (e.g., XML tags).',
  },
  {
    id: 'session-manager/5.1 file-as-tool-result',
    quote: '**Tool Reference**: A tool (like `read_file`) returns the content, which becomes a `ToolResultContent`.',
  },
  {
    id: 'session-manager/5.1 example-text-with-file',
    quote:
      '**Example: Text Content with File**\n{\n  "type": "message",\n  "id": "msg-123",\n  "parent_id": "msg-122",\n  "timestamp": "2024-01-01T12:00:00Z",\n  "message": {\n    "role": "user",\n    "content": [\n      {\n        "type": "text",\n        "text": {\n          "content": "Analyze this file:\\n<file name=\\"main.go\\">\\npackage main\\n...</file>"\n        }\n      }\n    ]\n  }\n}',
  },
  {
    id: 'session-manager/5.2 normalizing',
    quote: 'Normalizing upstream formats into our `Content` schema.',
    settled:
      'The model adapters of the agent package normalise; a session stores and gives back the form on the right and no other.',
  },
  {
    id: 'session-manager/5.2 openai-string',
    quote: '| **OpenAI** | `content: "string"` | `Content: []Content{{Type: "text", Text: {Content: "..."}}}` |',
    settled: 'As for `5.2 normalizing`.',
  },
  {
    id: 'session-manager/5.2 openai-parts',
    quote:
      '| **OpenAI** | `content: [{type: "text", text: "..."}]` | `Content: []Content{{Type: "text", Text: {Content: "..."}}}` |',
    settled: 'As for `5.2 normalizing`.',
  },
  {
    id: 'session-manager/5.2 anthropic-text',
    quote:
      '| **Anthropic** | `content: [{type: "text", text: "..."}]` | `Content: []Content{{Type: "text", Text: {Content: "..."}}}` |',
    settled: 'As for `5.2 normalizing`.',
  },
  {
    id: 'session-manager/5.2 google-text',
    quote: '| **Google** | `parts: [{text: "..."}]` | `Content: []Content{{Type: "text", Text: {Content: "..."}}}` |',
    settled: 'As for `5.2 normalizing`.',
  },
  {
    id: 'session-manager/5.2 google-inline-data',
    quote: '| **Google** | `parts: [{inline_data: {...}}]` | `Content: []Content{{Type: "image", Image: {...}}}` |',
    settled: 'As for `5.2 normalizing`.',
  },
] as const satisfies Requirement[]
