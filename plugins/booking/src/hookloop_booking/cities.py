"""City names in English and Chinese: data, and the one lookup over it.

A city is known by its English name; every other spelling leads to it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

CITIES: Final = MappingProxyType(
    {
        "Beijing": "北京",
        "Changchun": "长春",
        "Changsha": "长沙",
        "Chengdu": "成都",
        "Chongqing": "重庆",
        "Dalian": "大连",
        "Fuzhou": "福州",
        "Guangzhou": "广州",
        "Guilin": "桂林",
        "Guiyang": "贵阳",
        "Haikou": "海口",
        "Hangzhou": "杭州",
        "Harbin": "哈尔滨",
        "Hefei": "合肥",
        "Hong Kong": "香港",
        "Jinan": "济南",
        "Kunming": "昆明",
        "Lanzhou": "兰州",
        "Nanchang": "南昌",
        "Nanjing": "南京",
        "Nanning": "南宁",
        "Ningbo": "宁波",
        "Qingdao": "青岛",
        "Shanghai": "上海",
        "Shenyang": "沈阳",
        "Shenzhen": "深圳",
        "Suzhou": "苏州",
        "Taiyuan": "太原",
        "Tianjin": "天津",
        "Wuhan": "武汉",
        "Wuxi": "无锡",
        "Xiamen": "厦门",
        "Xi'an": "西安",
        "Xining": "西宁",
        "Xuzhou": "徐州",
        "Yinchuan": "银川",
        "Zhengzhou": "郑州",
        "Zhuhai": "珠海",
    }
)
"""English name to Chinese name."""

OTHER_NAMES: Final = MappingProxyType(
    {"peking": "Beijing", "canton": "Guangzhou", "xian": "Xi'an", "香港": "Hong Kong"}
)
"""Further spellings, casefolded."""


def spellings() -> dict[str, str]:
    """Every known spelling, casefolded and without apostrophes, to the city's English name."""
    english = {name.casefold().replace("'", ""): name for name in CITIES}
    chinese = {local: name for name, local in CITIES.items()}
    return {**english, **chinese, **OTHER_NAMES}


def chinese(name: str) -> str:
    """The Chinese name of a city known by its English one; the name itself where there is none."""
    return CITIES.get(name, name)
