"""Words that say nothing about *which* ticket is meant: data for `reading`."""

from __future__ import annotations

from typing import Final

_ENGLISH: Final = """
a about again all also am an and any anything are at available back be been book booked booking bookings buy by
can cancel cancellation cancelled cheapest check class could d delete did do does done drop earliest every
everything first for free friday get give go going got had have hello help hey hi how i id if in into is it
itinerary its journey just kindly leave let like line list ll look looking love m made make may maybe me might
mine monday my need next nice no not now number of off ok okay on one ones open or order our over pay please pls
purchase put railway refund remove reservation reservations reserve return ride route s saturday seat seats see
set show so some something soon still sunday take tell thank thanks that the their them then there these this
those thursday ticket tickets today tomorrow tonight train trains travel trip tuesday unbook undo up us ve very
via want wanted was we wednesday week were what when where which will wish with would yes you your
"""

_CHINESE: Final = """
我想要 我想 我要 我需要 我 想要 想 要 需要 麻烦您 麻烦你 麻烦 请您 请你 请 帮我 帮忙 帮
给我 给 替我 你好 您好 您 你 能不能 能否 可以 可否 能 预订 预定 订购 订票 订单 订
定 购买 购票 买 来 一张 一个 一下 张 个 火车票 高铁票 动车票 车票 票 火车 高铁 动车
列车 车次 班次 班 车 座位 取消掉 取消 退掉 退票 退订 退 撤销 掉 不要 不用 了 的
吧 吗 呢 啊 呀 哦 那 这 它 谢谢 谢 多谢 号 第 次 编号 出发 前往
现在 今天 明天 后天 今晚 随便 任意 哪 什么 有 还 把 将 再 就 先 好 是
和 与 已 都 坐 乘 路线 线路 一 最早 便宜
"""

ENGLISH: Final = frozenset(_ENGLISH.split())

CHINESE: Final = tuple(_CHINESE.split())
"""Chinese has no spaces between words, so these are cut out of the text, the longest first."""
