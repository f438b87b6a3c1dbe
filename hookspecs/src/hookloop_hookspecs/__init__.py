"""The contract of hookloop: all that a plugin imports."""

from ._markers import hookimpl, hookspec
from .entries import (
    Decided,
    Ending,
    Entry,
    Recut,
    Resumed,
    Said,
    Spent,
    Started,
    State,
    Status,
    StopReason,
    Summary,
    Suspended,
    ToolSpec,
    TurnEnded,
    TurnStarted,
    TurnSuspended,
)
from .errors import (
    ConfigError,
    Conflict,
    ContractError,
    CorruptData,
    HistoryError,
    HookloopError,
    LimitError,
    NoOpenTurn,
    PluginError,
    ProviderError,
)
from .memory import (
    Batch,
    ConversationInfo,
    Lease,
    Loaded,
    LoadQuery,
    Memory,
    MemoryCapabilities,
    plan_append,
)
from .messages import (
    File,
    Image,
    Message,
    Opaque,
    Origin,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    json_text,
)
from .outcome import Outcome, PendingCall, Round
from .providers import (
    CallDelta,
    Delta,
    ModelRequest,
    Provider,
    ProviderTraits,
    Reply,
    Settings,
    TextDelta,
    ThinkingDelta,
)
from .tools import ArgumentsError, Tool, ToolContext, ToolError, Toolset, tool
from .turn import Turn
from .verdicts import Answer, Approve, Deny, Replace, Retry, Stop, Suspend
from .views import Narrow, Window
